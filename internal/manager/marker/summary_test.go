// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestSummary(t *testing.T) {
	const resolved = "ProbesResolved True Resolved: All probes can run in all matched pods."
	const exclusive = "MarksExclusive True Exclusive: No conflicting marks."
	http := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}
	cases := map[string]struct {
		marker  *builders.MarkerBuilder
		others  []*v1alpha1.PodProbeMarker
		pods    []*corev1.Pod
		errs    map[string][]v1alpha1.ContainerProbeError
		matched int
		want    []string
	}{
		"no pods": {
			marker: builders.Marker("ns", "web").Probe(label("p", "a")),
			want: []string{
				resolved, exclusive, "PodsMatched False NoPods: The selector matches no pod that is bound to a node, initialized and not terminating.",
			},
		},
		"only eligible pods": {
			marker:  builders.Marker("ns", "web").Probe(label("p", "a")),
			pods:    []*corev1.Pod{game("a").Build(), game("b").Terminating().Build(), game("c").Initialized("False").Build()},
			matched: 1,
			want:    []string{resolved, exclusive},
		},
		"invalid annotation": {
			marker:  builders.Marker("ns", "web").Annotation(v1alpha1.MessageUpdatesAnnotationKey, "immediate").Probe(label("p", "a")),
			pods:    []*corev1.Pod{game("a").Build()},
			matched: 1,
			want: []string{
				"ProbesResolved False InvalidAnnotation: " +
					`Annotation seamark.dev/message-updates: "immediate" is invalid and counts as not set: must be Limited or Immediate.`,
				exclusive,
			},
		},
		"invalid annotation and missing container": {
			marker:  builders.Marker("ns", "web").Annotation(v1alpha1.MessageUpdatesAnnotationKey, "").Probe(label("p", "a").Container("db")),
			pods:    []*corev1.Pod{game("a").Build()},
			matched: 1,
			want: []string{
				"ProbesResolved False ContainerNotFound: " +
					`Probe "p": container "db" not found (1 of 1 matched pods, such as a). ` +
					`Annotation seamark.dev/message-updates: "" is invalid and counts as not set: must be Limited or Immediate.`,
				exclusive,
			},
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
		"reported errors": {
			marker: builders.Marker("ns", "web").Probe(label("p", "a")).Probe(label("q", "b")),
			pods:   []*corev1.Pod{game("c").Build(), game("b").Build(), game("a").Build()},
			errs: map[string][]v1alpha1.ContainerProbeError{
				"c": {
					{Name: "web#q", Reason: v1alpha1.ProbeNotEnded, Message: "the runtime"}, {Name: "web#p", Reason: v1alpha1.ProbeCannotRun, Message: "pid 2"},
				},
				"b": {
					{Name: "web#p", Reason: v1alpha1.ProbeCannotRun, Message: "pid 1"}, {Name: "web#removed", Reason: v1alpha1.ProbeCannotRun},
					{Name: "other#p", Reason: v1alpha1.ProbeCannotRun}, {Name: "web", Reason: v1alpha1.ProbeCannotRun},
				},
			},
			matched: 3,
			want: []string{
				`ProbesResolved False CannotRun: Probe "p": cannot be run (2 of 3 matched pods, such as b: pid 1). ` +
					`Probe "q": the runtime has not ended an earlier run (1 of 3 matched pods, such as c: the runtime).`,
				exclusive,
			},
		},
		"one of too many markers": {
			marker:  builders.Marker("ns", "web").Probe(label("p", "a")).Probe(label("q", "b")),
			others:  many(64, 32),
			pods:    []*corev1.Pod{game("b").Build(), game("a").Build()},
			matched: 2,
			want: []string{
				"ProbesResolved False TooManyMarkers: All probes: more than 64 markers select the pod, and only the oldest count " +
					"(2 of 2 matched pods, such as a: m000, m001, m002 and 61 more).",
				exclusive,
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
			compiler := plan.NewCompiler()
			all := compiler.All(append([]*v1alpha1.PodProbeMarker{marker}, tc.others...))
			collected := newSurvey(all[:1])
			for _, pod := range tc.pods {
				if plan.Eligible(pod) && collected.selects(pod, all) {
					collected.add(pod, plan.Pod(pod, all, plan.KubernetesDefaults()), tc.errs[pod.Name])
				}
			}
			s := collected.summaries["web"]
			expect.Equal(t, "matched pods", tc.matched, s.matched)
			var got []string
			for _, c := range s.findings(marker) {
				got = append(got, words(c.Condition))
			}
			expect.Equal(t, "conditions", tc.want, got)
		})
	}
}

// The API server rejects longer messages.
func TestMessageLengthIsLimited(t *testing.T) {
	s := newSummary()
	for i := range 1000 {
		key := mark.Label(fmt.Sprintf("game.io/%04d", i))
		s.conflicts[mark.Conflict{Key: key, Winner: identity.ID{Marker: "api", Probe: "p"}}] = pods{count: 1, example: "pod"}
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
