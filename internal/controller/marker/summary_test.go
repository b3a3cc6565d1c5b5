// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/view"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestSummary(t *testing.T) {
	game := func(name string) *builders.PodBuilder { return builders.Pod("ns", name).Label("app", "game") }
	label := func(probe, key string) *builders.ProbeBuilder {
		return builders.Probe(probe).Label(v1alpha1.ProbeSucceeded, key, "1")
	}
	const resolved = "ProbesResolved True Resolved: All probes can run in all matched pods."
	const exclusive = "MarksExclusive True Exclusive: No conflicting marks."
	http := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}
	cases := map[string]struct {
		marker  *builders.MarkerBuilder
		others  []*v1alpha1.PodProbeMarker
		pods    []*corev1.Pod
		matched int
		want    []string
	}{
		"no pods": {
			marker: builders.Marker("ns", "web").Probe(label("p", "a")),
			want:   []string{resolved, exclusive},
		},
		"only eligible pods": {
			marker:  builders.Marker("ns", "web").Probe(label("p", "a")),
			pods:    []*corev1.Pod{game("a").Build(), game("b").Terminating().Build(), game("c").Initialized("False").Build()},
			matched: 1,
			want:    []string{resolved, exclusive},
		},
		"missing containers and ports": {
			marker: builders.Marker("ns", "web").
				Probe(label("q", "a").Container("db").Handler(http)).
				Probe(label("p", "b").Container("cache")),
			pods: []*corev1.Pod{
				game("c").Container("db").Build(), game("b").Container("cache").Build(), game("a").Container("db").Container("cache").Build(),
			},
			matched: 3,
			want: []string{
				"ProbesResolved False ContainerNotFound: " +
					`Probe "q": container "db" not found (1 of 3 matched pods, such as b). ` +
					`Probe "q": container "db" has no port "http" (2 of 3 matched pods, such as a). ` +
					`Probe "p": container "cache" not found (1 of 3 matched pods, such as c).`,
				exclusive,
			},
		},
		"keys of another marker and another probe": {
			marker: builders.Marker("ns", "web").Probe(label("p", "a").Condition("x/y")).Probe(label("q", "b").Condition("x/y")),
			others: []*v1alpha1.PodProbeMarker{
				builders.Marker("ns", "api").Probe(label("p", "b")).Build(),
				builders.Marker("ns", "zoo").Probe(label("p", "a")).Build(),
				builders.Marker("ns", "elsewhere").Selector("app", "db").Probe(label("p", "a")).Build(),
			},
			pods:    []*corev1.Pod{game("a").Build(), game("b").Build()},
			matched: 2,
			want: []string{
				resolved,
				"MarksExclusive False KeyConflict: " +
					`Probe "q": condition "x/y" is set by probe "p" of marker "web" (2 of 2 matched pods, such as a). ` +
					`Probe "q": label "b" is set by probe "p" of marker "api" (2 of 2 matched pods, such as a).`,
			},
		},
		"probe that cannot run reserves no key": {
			marker:  builders.Marker("ns", "web").Probe(label("p", "a")),
			others:  []*v1alpha1.PodProbeMarker{builders.Marker("ns", "api").Probe(label("p", "a").Container("db")).Build()},
			pods:    []*corev1.Pod{game("a").Build()},
			matched: 1,
			want:    []string{resolved, exclusive},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			marker := tc.marker.Build()
			all := []v1alpha1.PodProbeMarker{*marker}
			for _, other := range tc.others {
				all = append(all, *other)
			}
			compiler := plan.NewCompiler()
			compiled, err := compiler.Compile(marker)
			if err != nil {
				t.Fatal(err)
			}
			pods := make([]corev1.Pod, 0, len(tc.pods))
			for _, pod := range tc.pods {
				pods = append(pods, *pod)
			}
			contenders := compiler.All(rivals(marker, all))
			s, err := summarize(compiled, pods, func(pod *corev1.Pod) (plan.PodPlan, error) {
				return plan.Pod(pod, contenders, plan.KubernetesDefaults()), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if s.matched != tc.matched {
				t.Errorf("matched %d pods, want %d", s.matched, tc.matched)
			}
			var got []string
			for _, c := range s.findings(marker) {
				got = append(got, words(c.Condition))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// The API server rejects longer messages.
func TestMessageLengthIsLimited(t *testing.T) {
	s := summary{conflicts: map[conflict]pods{}}
	for i := range 1000 {
		key := mark.Label(fmt.Sprintf("game.io/%04d", i))
		s.conflicts[conflict{key: key, loser: "p", winner: probeid.ID{Marker: "api", Probe: "p"}}] = pods{count: 1, example: "pod"}
	}
	message := s.exclusive(nil).Message
	listed := strings.Count(message, "is set by")
	if want := fmt.Sprintf(" And %d more.", 1000-listed); len(message) > 32768 || listed < 100 || !strings.HasSuffix(message, want) {
		t.Errorf("%d bytes list %d conflicts and end with %q, want %q", len(message), listed, message[len(message)-20:], want)
	}
}

func words(c metav1.Condition) string {
	return c.Type + " " + string(c.Status) + " " + c.Reason + ": " + c.Message
}

func TestRivals(t *testing.T) {
	label := func(key string) *builders.ProbeBuilder {
		return builders.Probe("p").Label(v1alpha1.ProbeFailed, key, "1")
	}
	web := builders.Marker("ns", "web").Probe(label("a").Condition("x/y")).Build()
	all := []v1alpha1.PodProbeMarker{
		*builders.Marker("ns", "label").Probe(label("a")).Build(),
		*builders.Marker("ns", "annotation").Probe(builders.Probe("p").Annotation(v1alpha1.ProbeFailed, "a", "1")).Build(),
		*builders.Marker("ns", "condition").Probe(builders.Probe("p").Condition("x/y")).Build(),
		*builders.Marker("ns", "none").Probe(label("b")).Build(),
		*web,
	}
	var got []string
	for _, m := range rivals(web, all) {
		got = append(got, m.Name)
	}
	if diff := cmp.Diff([]string{"label", "condition", "web"}, got); diff != "" {
		t.Errorf("rivals (-want +got):\n%s", diff)
	}
}

func TestHasRemains(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:web":{}}}}`
	pod := func(value string) *builders.PodBuilder {
		b := builders.Pod("ns", "a").Label("app", "game").ManagedFields("seamark", "status", entry)
		if value != "" {
			b.Label("web", value)
		}
		return b
	}
	other := builders.Marker("ns", "other").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "other")).Build()
	npp := &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		UID: "uid-a", ProbeStates: []v1alpha1.ContainerProbeState{{Name: "other#p", State: v1alpha1.ProbeSucceeded}},
	}}}}
	cases := map[string]struct {
		pod     *corev1.Pod
		others  []v1alpha1.PodProbeMarker
		remains bool
	}{
		"mark is on the pod":                       {pod: pod("1").Build(), remains: true},
		"mark is removed":                          {pod: pod("").Build()},
		"key of another marker with its value":     {pod: pod("other").Build(), others: []v1alpha1.PodProbeMarker{*other}},
		"key of another marker with the old value": {pod: pod("1").Build(), others: []v1alpha1.PodProbeMarker{*other}, remains: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deleted := builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "1")).Deleting().Build()
			markers := plan.NewCompiler().All(append(tc.others, *deleted))
			v := view.New(tc.pod, markers, view.PlaceUnknown, npp, view.Options{Defaults: plan.KubernetesDefaults()})
			remains, err := hasRemains(v, declared(deleted))
			if err != nil || remains != tc.remains {
				t.Errorf("remains: %t, error %v; want %t", remains, err, tc.remains)
			}
		})
	}
}

func TestContains(t *testing.T) {
	marker := builders.Marker("ns", "web").Build()
	spec := func(namespace, probe string) *v1alpha1.NodePodProbeSpec {
		return &v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
			Namespace: namespace, Name: "a", Probes: []v1alpha1.ContainerProbe{{Name: probe}},
		}}}
	}
	cases := map[string]struct {
		spec *v1alpha1.NodePodProbeSpec
		want bool
	}{
		"probe of the marker":          {spec: spec("ns", "web#p"), want: true},
		"marker of another namespace":  {spec: spec("other", "web#p")},
		"marker name with prefix":      {spec: spec("ns", "my-web#p")},
		"marker name with suffix":      {spec: spec("ns", "web-2#p")},
		"probe with the marker's name": {spec: spec("ns", "my#web")},
		"no pods":                      {spec: &v1alpha1.NodePodProbeSpec{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := contains(tc.spec, marker); got != tc.want {
				t.Errorf("contains = %t, want %t", got, tc.want)
			}
		})
	}
}
