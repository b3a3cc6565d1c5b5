// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// strict refuses annotations with the value "bad", removals if fixed, and everything if closed.
type strict struct {
	closed  bool
	fixed   bool
	tries   int
	dryRuns int
	written []string
	version int
}

func (s *strict) check(marks mark.Marks) error {
	for _, value := range marks {
		if value.Text == "bad" || s.closed {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a",
				field.ErrorList{field.TooLong(field.NewPath("metadata", "annotations"), "", 262144)})
		}
	}
	if s.closed {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("closed"))
	}
	return nil
}

func (s *strict) Try(_ context.Context, _ *corev1.Pod, marks mark.Marks) error {
	s.tries++
	s.dryRuns++
	return s.check(marks)
}

func (s *strict) Marks(_ context.Context, _ *corev1.Pod, marks mark.Marks) (string, error) {
	s.tries++
	if err := s.check(marks); err != nil {
		return "", err
	}
	s.version++
	s.written = nil
	for _, key := range marks.Keys() {
		s.written = append(s.written, key.String()+"="+marks[key].Text)
	}
	return strconv.Itoa(1000 + s.version), nil
}

func (s *strict) MarksOn(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error) {
	return s.Marks(ctx, pod, marks)
}

func (s *strict) Remove(context.Context, *corev1.Pod, []mark.Key) (string, error) {
	s.tries++
	if s.fixed || s.closed {
		return "", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("protected"))
	}
	return "1", nil
}

func TestRefusedMarksAreOmitted(t *testing.T) {
	marker := func(value string) *v1alpha1.PodProbeMarker {
		return builders.Marker("ns", "web").
			Probe(builders.Probe("o").Label(v1alpha1.ProbeSucceeded, "one", "1")).
			Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "two", "2").Annotation(v1alpha1.ProbeSucceeded, "note", value)).
			Probe(builders.Probe("q").Label(v1alpha1.ProbeSucceeded, "three", "3")).Build()
	}
	npp := reported("uid-a", "Succeeded")
	for _, probe := range []string{"web#o", "web#q"} {
		npp.Status.PodProbeStatuses[0].ProbeStates = append(npp.Status.PodProbeStatuses[0].ProbeStates,
			v1alpha1.ContainerProbeState{Name: probe, State: v1alpha1.ProbeSucceeded})
	}
	web := types.NamespacedName{Namespace: "ns", Name: "web"}
	server := &strict{}
	r := reconciler(t, server)
	reconcileAgain := func(marker *v1alpha1.PodProbeMarker, version string) {
		t.Helper()
		pod := builders.Pod("ns", "a").Label("app", "game").Build()
		pod.ResourceVersion = version
		r.Reader.Client = fakeapi.Client(t, []client.Object{marker, pod, npp}...).WithReturnManagedFields().Build()
		reconcileOne(t, r, "a")
	}
	problems := func() []string {
		return slices.Sorted(maps.Keys(r.Problems.OfMarker(web)[types.NamespacedName{Namespace: "ns", Name: "a"}].Refused))
	}

	reconcileAgain(marker("bad"), "1")
	expect.Equal(t, "marks written", []string{"label one=1", "label three=3"}, server.written)
	expect.Equal(t, "reported probes", []string{"p"}, problems())
	tries := server.tries
	reconcileAgain(marker("bad"), "1")
	reconcileAgain(marker("bad"), "1")
	expect.Equal(t, fmt.Sprintf("the refused marks were tried %d more times without a change", server.tries-tries), tries, server.tries)
	other := marker("good")
	other.Generation++
	reconcileAgain(other, "1")
	if want := []string{"annotation note=good", "label one=1", "label three=3", "label two=2"}; !slices.Equal(server.written, want) {
		t.Errorf("after an edit of the marker, wrote %v, want %v", server.written, want)
	}
	if len(problems()) > 0 {
		t.Errorf("problems %v remain", problems())
	}
}

// Every change of the pod may make room for the refused marks, but not every change is worth a
// search, which takes many requests.
func TestRefusedMarksAreSearchedRarely(t *testing.T) {
	marker := builders.Marker("ns", "web")
	npp := reported("uid-a", "Succeeded")
	for _, name := range []string{"p", "q", "r", "s", "t", "u"} {
		value := map[bool]string{true: "good", false: "bad"}[name < "r"]
		marker.Probe(builders.Probe(name).Annotation(v1alpha1.ProbeSucceeded, name, value))
		npp.Status.PodProbeStatuses[0].ProbeStates = append(npp.Status.PodProbeStatuses[0].ProbeStates,
			v1alpha1.ContainerProbeState{Name: "web#" + name, State: v1alpha1.ProbeSucceeded})
	}
	server := &strict{}
	r := reconciler(t, server)
	now := time.Unix(1_700_000_000, 0)
	r.Now = func() time.Time { return now }
	requests := func(after time.Duration, version string) (int, time.Duration) {
		t.Helper()
		now = now.Add(after)
		pod := builders.Pod("ns", "a").Label("app", "game").Annotation("p", "good").Annotation("q", "good").
			ManagedFields("seamark", "status", `{"f:metadata":{"f:annotations":{"f:p":{},"f:q":{}}}}`).Build()
		pod.ResourceVersion = version
		r.Reader.Client = fakeapi.Client(t, marker.Build(), pod, npp).WithReturnManagedFields().Build()
		tries := server.tries
		result := reconcileOne(t, r, "a")
		expect.Equal(t, "refused probes are reported", 4, len(problemOfPod(r).Refused))
		return server.tries - tries, result.RequeueAfter
	}

	search, again := requests(0, "1")
	if search <= 4 || again != 0 {
		t.Errorf("first search: %d requests, again after %s", search, again)
	}
	for _, step := range []struct {
		name     string
		after    time.Duration
		version  string
		requests int
		again    time.Duration
	}{
		{name: "same pod", after: 10 * time.Second, version: "1"},
		{name: "changed pod", after: 10 * time.Second, version: "2", requests: 1, again: 10 * time.Second},
		{name: "same pod again", after: 4 * time.Second, version: "2", again: 6 * time.Second},
		{name: "search is due", after: 6 * time.Second, version: "2", requests: search},
		{name: "same pod after the search", after: time.Hour, version: "2"},
		{name: "changed pod long after the search", after: time.Hour, version: "3", requests: search},
	} {
		if n, again := requests(step.after, step.version); n != step.requests || again != step.again {
			t.Errorf("%s: %d requests, again after %s; want %d and %s", step.name, n, again, step.requests, step.again)
		}
	}
}

// A probe whose marks are refused in one of its states changes its state every 5 seconds. There is a
// search in 30 seconds, and the marks of the other probe are always correct.
func TestRefusedMarksOfAFlappingProbe(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("o").Label(v1alpha1.ProbeSucceeded, "one", "1")).
		Probe(builders.Probe("p").Annotation(v1alpha1.ProbeSucceeded, "note", "bad").Annotation(v1alpha1.ProbeFailed, "note", "good")).Build()
	server := &strict{}
	r := reconciler(t, server)
	now := time.Unix(1_700_000_000, 0)
	r.Now = func() time.Time { return now }
	want := map[v1alpha1.ProbeState][]string{v1alpha1.ProbeSucceeded: {"label one=1"}, v1alpha1.ProbeFailed: {"annotation note=good", "label one=1"}}
	for i := range 13 {
		state := []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed}[i%2]
		npp := reported("uid-a", state)
		npp.Status.PodProbeStatuses[0].ProbeStates = append(npp.Status.PodProbeStatuses[0].ProbeStates,
			v1alpha1.ContainerProbeState{Name: "web#o", State: v1alpha1.ProbeSucceeded})
		// The cache has the last write.
		pod := builders.Pod("ns", "a").Label("app", "game")
		fields := map[int]string{1: `{"f:labels":{"f:one":{}}}`, 2: `{"f:labels":{"f:one":{}},"f:annotations":{"f:note":{}}}`}
		if n := len(server.written); n > 0 {
			pod.Label("one", "1").ManagedFields("seamark", "status", `{"f:metadata":`+fields[n]+`}`)
		}
		if len(server.written) > 1 {
			pod.Annotation("note", "good")
		}
		cached := pod.Build()
		cached.ResourceVersion = strconv.Itoa(1000 + server.version)
		r.Reader.Client = fakeapi.Client(t, marker, cached, npp).WithReturnManagedFields().Build()
		reconcileOne(t, r, "a")
		expect.Equal(t, fmt.Sprintf("change %d: marks written", i), want[state], server.written)
		now = now.Add(5 * time.Second)
	}
	// Each search tries no probe, the first, and the second: at the start, and after 30 and 60 seconds.
	expect.Equal(t, "dry runs in a minute", 9, server.dryRuns)
}

// The template has a label that an admission policy protects. It stays, and all other marks are
// written.
func TestRefusedRemovalBlocksNoMark(t *testing.T) {
	marker := builders.Marker("ns", "web").
		Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "healthy", "true").Label(v1alpha1.ProbeFailed, "sick", "true")).Build()
	pod := builders.Pod("ns", "a").Label("app", "game").Label("healthy", "true").
		Updated("kube-controller-manager", "", `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`).Build()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	server := &strict{fixed: true}
	r := reconciler(t, server, marker, pod, reported("uid-a", "Failed"))
	for range 3 {
		reconcileOne(t, r, "a")
	}
	expect.Equal(t, "marks written", []string{"label sick=true"}, server.written)
	if problem := problemOfPod(r); problem.Refused["p"] == "" {
		t.Errorf("problem %v, want the refused removal", problem)
	}
	expect.Equal(t, "requests", 3, server.tries)

	server = &strict{closed: true}
	r = reconciler(t, server, marker, pod, reported("uid-a", "Failed"))
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want that of an API server that refuses every write", err)
	}
}

// If the API server refuses every write, no probe is at fault.
func TestDeniedPodAccusesNoProbe(t *testing.T) {
	marker := healthyMarker()
	r := reconciler(t, &strict{closed: true}, marker, builders.Pod("ns", "a").Label("app", "game").Build(), reported("uid-a", "Succeeded"))
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}})
	if !apierrors.IsInvalid(err) {
		t.Errorf("error %v, want that of the API server", err)
	}
	if found := r.Problems.OfMarker(types.NamespacedName{Namespace: "ns", Name: "web"}); len(found) > 0 {
		t.Errorf("problems %v, want none", found)
	}
}
