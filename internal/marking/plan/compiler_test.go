// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestCompilerCachesEachVersion(t *testing.T) {
	base := func() *builders.MarkerBuilder { return builders.Marker("ns", "web").Probe(builders.Probe("p")) }
	other := base().Build()
	other.UID = "other"
	cases := map[string]struct {
		next  *v1alpha1.PodProbeMarker
		again bool
	}{
		"unchanged":      {next: base().Build(), again: true},
		"new generation": {next: base().Generation(2).Build()},
		"being deleted":  {next: base().Deleting().Build()},
		"recreated":      {next: other},
		"body published": {next: base().Annotation(v1alpha1.PublishHTTPBodyAnnotationKey, "true").Build()},
		"messages":       {next: base().Annotation(v1alpha1.MessageUpdatesAnnotationKey, "Immediate").Build()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compiler := plan.NewCompiler()
			first, err := compiler.Compile(base().Build())
			expect.NoError(t, err)
			second, err := compiler.Compile(tc.next)
			expect.NoError(t, err)
			if again := first == second; again != tc.again {
				t.Errorf("cached: %t, want %t", again, tc.again)
			}
			compiler.Forget(types.NamespacedName{Namespace: "ns", Name: "web"})
			if third, _ := compiler.Compile(tc.next); third == second {
				t.Error("cached after Forget")
			}
		})
	}
}

// TestPublishBody checks which probes of a marker with an exec and an httpGet probe publish bodies.
func TestPublishBody(t *testing.T) {
	get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	for value, want := range map[string][]string{"true": {"web#get"}, "True": nil, "false": nil, "": nil} {
		marker := builders.Marker("ns", "web").Annotation(v1alpha1.PublishHTTPBodyAnnotationKey, value).
			Probe(builders.Probe("exec")).Probe(builders.Probe("get").Handler(get)).Build()
		compiled, err := plan.Compile(marker)
		expect.NoError(t, err)
		var got []string
		for _, probe := range plan.Pod(pod, []*plan.Marker{compiled}, plan.KubernetesDefaults()).Probes {
			if probe.Plan.PublishBody {
				got = append(got, probe.Plan.Name)
			}
		}
		expect.Equal(t, fmt.Sprintf("annotation %q: probes that publish bodies", value), want, got)
	}
}

// TestMessageUpdates checks what the plan says about messages, and that it says nothing unless they are
// reported at once.
func TestMessageUpdates(t *testing.T) {
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	cases := map[string]struct {
		setting    v1alpha1.MessageUpdates
		annotation string
		want       v1alpha1.MessageUpdates
		invalid    bool
	}{
		"nothing set":        {},
		"setting Limited":    {setting: "Limited"},
		"setting Immediate":  {setting: "Immediate", want: "Immediate"},
		"annotation":         {setting: "Limited", annotation: "Immediate", want: "Immediate"},
		"annotation Limited": {setting: "Immediate", annotation: "Limited"},
		"invalid, Limited":   {setting: "Limited", annotation: "immediate", invalid: true},
		"invalid, Immediate": {setting: "Immediate", annotation: "never", want: "Immediate", invalid: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := builders.Marker("ns", "web").Probe(builders.Probe("p"))
			if tc.annotation != "" {
				m.Annotation(v1alpha1.MessageUpdatesAnnotationKey, tc.annotation)
			}
			defaults := plan.KubernetesDefaults()
			defaults.MessageUpdates = tc.setting
			planned := plan.Pod(pod, compile(t, m.Build()), defaults).Probes[0].Plan
			expect.Equal(t, "messageUpdates", tc.want, planned.MessageUpdates)
			if encoded, err := json.Marshal(planned); err != nil || strings.Contains(string(encoded), "messageUpdates") != (tc.want != "") {
				t.Errorf("encoded as %s, error %v", encoded, err)
			}
			if err := plan.CheckAnnotations(m.Build()); (err != nil) != tc.invalid || err != nil && !strings.Contains(err.Error(), `"`+tc.annotation+`"`) {
				t.Errorf("error %v, want one with the value: %t", err, tc.invalid)
			}
		})
	}
}

// ignorePlan ignores the identity of the marker, which TestPlanIdentifiesMarker tests.
func ignorePlan() cmp.Option { return cmpopts.IgnoreFields(v1alpha1.ContainerProbe{}, "Plan") }

// TestPlanIdentifiesMarker checks that the plan distinguishes a marker from an earlier one with
// the same name, but not an edited marker from itself.
func TestPlanIdentifiesMarker(t *testing.T) {
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	planOf := func(uid types.UID, probe *builders.ProbeBuilder) string {
		m := builders.Marker("ns", "web").Probe(probe).Build()
		m.UID = uid
		spec := plan.Node([]*corev1.Pod{pod}, compile(t, m), plan.KubernetesDefaults())
		return spec.PodProbes[0].Probes[0].Plan
	}
	first := planOf("uid-1", builders.Probe("p"))
	expect.Equal(t, fmt.Sprintf("plan %q", first), 8, len(first))
	expect.Equal(t, "plan of the edited marker", first, planOf("uid-1", builders.Probe("p").Handler(tcp())))
	if recreated := planOf("uid-2", builders.Probe("p")); recreated == first {
		t.Errorf("plan of the recreated marker = %q, want another one", recreated)
	}
	expect.Equal(t, "plan of a marker without a UID", "", planOf("", builders.Probe("p")))
}

func TestMarkers(t *testing.T) {
	planned := func(namespace, probe string) []v1alpha1.PodProbe {
		return []v1alpha1.PodProbe{{Namespace: namespace, Name: "a", Probes: []v1alpha1.ContainerProbe{{Name: probe}}}}
	}
	cases := map[string]struct {
		pods []v1alpha1.PodProbe
		want bool
	}{
		"probe of the marker":          {pods: planned("ns", "web#p"), want: true},
		"marker of another namespace":  {pods: planned("other", "web#p")},
		"marker name with prefix":      {pods: planned("ns", "my-web#p")},
		"marker name with suffix":      {pods: planned("ns", "web-2#p")},
		"probe with the marker's name": {pods: planned("ns", "my#web")},
		"no pods":                      {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "the plan has probes of the marker", tc.want, plan.Markers(tc.pods, "ns").Has("web"))
		})
	}
}

func TestCompileRejectsPoliciesForProviderAnnotations(t *testing.T) {
	for _, key := range []string{v1alpha1.PodProbeMarkerAnnotationKey, v1alpha1.PodProbeMarkerListAnnotationKey} {
		_, err := plan.Compile(builders.Marker("ns", "web").Probe(builders.Probe("p").Annotation(v1alpha1.ProbeFailed, key, "x")).Build())
		expect.ErrorWith(t, key, `spec.probes[0].markerPolicy[0].annotations: "`+key+`"`, err)
	}
}
