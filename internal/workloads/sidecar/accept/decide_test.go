// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package accept_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

const system = "seamark-system"

// version returns the set with an image and a custom version.
func version(image, custom string) *v1alpha1.SidecarSet {
	s := set("logs", "agent")
	s.Spec.Containers[0].Image = image
	s.Labels = map[string]string{v1alpha1.SidecarSetCustomVersionLabel: custom}
	return s
}

// recorded returns the revision of a set.
func recorded(t *testing.T, s *v1alpha1.SidecarSet, namespace string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	rev, err := history.New(s, namespace, number, 0)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// naming makes the set name a custom version.
func naming(s *v1alpha1.SidecarSet, custom string) *v1alpha1.SidecarSet {
	s.Spec.InjectionStrategy.Revision = &v1alpha1.SidecarSetInjectRevision{CustomVersion: &custom}
	return s
}

func TestDecide(t *testing.T) {
	first, second := version("agent:1", "v1"), version("agent:2", "v2")
	one, two := recorded(t, first, system, 1), recorded(t, second, system, 2)
	foreign := recorded(t, first, "hostile", 9)
	moved := naming(version("agent:2", "v2"), "v1")
	moved.Status.LatestRevision = two.Name
	hot := version("agent:1", "v1")
	hot.Spec.Containers[0].UpgradeStrategy.UpgradeType = "HotUpgrade"
	served := hot.DeepCopy()
	served.Status.LatestRevision = "logs-1"
	canary := version("agent:1", "v1")
	canary.Annotations = map[string]string{"apps.kruise.io/sidecarset-canary": "true"}
	wrong := version("agent:1", "v1")
	wrong.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	large := version("agent:1", "v1")
	large.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}
	for range 200 {
		large.Spec.Selector.MatchExpressions[0].Values = append(large.Spec.Selector.MatchExpressions[0].Values, strings.Repeat("v", 60))
	}
	// The named revision has a container that another set has.
	rival := set("rival", "agent")
	renamed := naming(version("agent:1", "v2"), "v1")
	renamed.Spec.Containers[0].Name = "other"
	for name, test := range map[string]struct {
		set       *v1alpha1.SidecarSet
		revisions []*appsv1.ControllerRevision
		others    []*v1alpha1.SidecarSet
		// latest and number are those of the latest revision, and named is the name of another one.
		latest         string
		number         int64
		isNew, changed bool
		named          string
		// problem is a part of the only problem, and refused whether pods are refused.
		problem string
		refused bool
	}{
		"first generation":                 {set: first, latest: one.Name, number: 1, isNew: true},
		"it names itself":                  {set: naming(version("agent:1", "v1"), "v1"), latest: one.Name, number: 1, isNew: true, named: one.Name},
		"second generation":                {set: second, revisions: []*appsv1.ControllerRevision{one}, latest: two.Name, number: 2, isNew: true},
		"nothing has changed":              {set: second, revisions: []*appsv1.ControllerRevision{one, two}, latest: two.Name, number: 2},
		"the first content again":          {set: first, revisions: []*appsv1.ControllerRevision{one, two}, latest: one.Name, number: 3, changed: true},
		"another version of it":            {set: version("agent:2", "v3"), revisions: []*appsv1.ControllerRevision{one, two}, latest: two.Name, number: 2, changed: true},
		"it names an older one":            {set: naming(version("agent:2", "v2"), "v1"), revisions: []*appsv1.ControllerRevision{one, two}, latest: two.Name, number: 2, named: one.Name},
		"it names none":                    {set: naming(version("agent:2", "v2"), "v9"), revisions: []*appsv1.ControllerRevision{one, two}, problem: `spec.injectionStrategy.revision.customVersion: "v9" is not found: the set has v1, v2`},
		"recorded in another namespace":    {set: first, revisions: []*appsv1.ControllerRevision{foreign}, latest: one.Name, number: 1, isNew: true},
		"it names one that is there":       {set: naming(version("agent:2", "v2"), "v1"), revisions: []*appsv1.ControllerRevision{foreign, two}, problem: `customVersion: "v1" is not found: the set has v2`},
		"one of OpenKruise is not copied":  {set: moved, revisions: []*appsv1.ControllerRevision{foreign, two}, problem: `is not found: the set has v2. Copy the revisions that OpenKruise has recorded with seamark migrate revisions`},
		"what Seamark does not serve":      {set: hot, problem: `spec.containers[0].upgradeStrategy.upgradeType: "HotUpgrade" is not supported`},
		"it was served by OpenKruise":      {set: served, problem: `"HotUpgrade" is not supported`, refused: true},
		"canary set":                       {set: canary, problem: "metadata.annotations[apps.kruise.io/sidecarset-canary]: canary sets are not supported"},
		"selector":                         {set: wrong, problem: "spec.selector.matchLabels"},
		"selector that is too large":       {set: large, problem: "spec.selector: its webhook entry takes"},
		"conflict of the named revision":   {set: renamed, revisions: []*appsv1.ControllerRevision{one}, others: []*v1alpha1.SidecarSet{rival}, problem: "of the revision " + one.Name + ": agent is the name of a container of SidecarSet rival"},
		"conflict of the latest revision ": {set: first, others: []*v1alpha1.SidecarSet{rival}, problem: "spec.containers[0].name: agent is the name of a container of SidecarSet rival"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := accept.Decide(accept.Input{Set: test.set, Revisions: test.revisions, Others: test.others, Namespace: system})
			if err != nil {
				t.Fatal(err)
			}
			if test.problem != "" {
				if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].String(), test.problem) || (got.InForce != nil) != test.refused ||
					test.refused && got.InForce.Refused != got.Problems[0].String() {
					t.Errorf("problems %v, in force %+v, want %s", got.Problems, got.InForce, test.problem)
				}
				return
			}
			if len(got.Problems) > 0 || got.Latest.Name != test.latest || got.Latest.Revision != test.number || got.Latest.Namespace != system {
				t.Fatalf("problems %v, latest %s/%s with number %d", got.Problems, got.Latest.Namespace, got.Latest.Name, got.Latest.Revision)
			}
			if got.New != test.isNew || got.Changed != test.changed || got.InForce.NamedRevision != test.named || got.InForce.Revision != test.latest {
				t.Errorf("decision %+v, in force %+v", got, got.InForce)
			}
		})
	}
}

// TestViews checks what an accepted set injects while a later generation is not accepted.
func TestViews(t *testing.T) {
	one, two := recorded(t, version("agent:1", "v1"), system, 1), recorded(t, version("agent:2", "v2"), system, 2)
	later := set("logs", "later")
	later.Generation = 3
	later.Status.InForce = &v1alpha1.SidecarSetInForce{Generation: 2, Revision: two.Name, NamedRevision: one.Name, Selector: later.Spec.Selector}
	views, err := accept.Views(later, system, []*appsv1.ControllerRevision{one, two})
	if err != nil || len(views) != 2 || views[0].Spec.Containers[0].Image != "agent:2" || views[1].Spec.Containers[0].Image != "agent:1" {
		t.Errorf("views %+v, error %v, want those of both revisions", views, err)
	}
}
