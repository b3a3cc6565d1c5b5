// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/isolate"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

// broken returns the set as it is isolated with a value of a wrong type.
func broken(t *testing.T, set *v1alpha1.SidecarSet, half, part, field string, value any) *v1alpha1.SidecarSet {
	t.Helper()
	encoded, err := json.Marshal(set)
	var object map[string]map[string]any
	if err == nil {
		err = json.Unmarshal(encoded, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	object[half][part].(map[string]any)[field] = value //nolint:forcetypeassert // Both parts are objects.
	isolated := &v1alpha1.SidecarSet{}
	if encoded, err = json.Marshal(object); err == nil {
		err = isolate.Object(encoded, isolated)
	}
	if err != nil || isolate.Of(isolated) == nil {
		t.Fatalf("error %v, isolated %v", err, isolate.Of(isolated))
	}
	return isolated
}

func gamePod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Labels: map[string]string{"app": "game"}}}
}

// TestIsolatedSetKeepsItsNamedRevision checks that new pods do not get the latest revision because the part of a set that
// says which pods get it cannot be decoded.
func TestIsolatedSetKeepsItsNamedRevision(t *testing.T) {
	set, latest := acceptedSet(t, "game")
	old := set.DeepCopy()
	old.Spec.Containers[0].Image = "logs:0"
	stable, err := history.New(old, own, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	set.Status.InForce.NamedRevision, set.Status.InForce.Policy = stable.Name, v1alpha1.PartialSidecarSetInjectRevisionPolicy
	set.Spec.UpdateStrategy.Partition = new(intstr.FromString("100%"))
	for name, each := range map[string]*v1alpha1.SidecarSet{"decoded": set, "isolated": broken(t, set, "spec", "updateStrategy", "partition", 3000000000)} {
		trimmed, err := new(acceptances).trim(each)
		if err != nil {
			t.Fatal(err)
		}
		sets := newSets(t, trimmed.(*v1alpha1.SidecarSet), each, interceptor.Funcs{}, latest, stable) //nolint:forcetypeassert // It trims a set.
		for i := range 100 {
			choice, err := sets.Choose(t.Context(), "logs", gamePod(), types.UID(fmt.Sprint(i)))
			if err != nil || choice.Revision.Containers[0].Image != "logs:0" {
				t.Fatalf("%s: %+v, error %v", name, choice, err)
			}
		}
	}
}

// stored returns the calls of an API server that has the set as it is isolated.
func stored(isolated *v1alpha1.SidecarSet) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if into, ok := object.(*v1alpha1.SidecarSet); ok {
				isolated.DeepCopyInto(into)
				return nil
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.(*v1alpha1.SidecarSetList).Items = []v1alpha1.SidecarSet{*isolated.DeepCopy()} //nolint:forcetypeassert // Nothing else is listed.
			return nil
		},
	}
}

// TestIsolatedAcceptanceIsNotNone reads a set from the API server of which it cannot be decoded what was accepted: a pod
// that it selects must not be created as if nothing was.
func TestIsolatedAcceptanceIsNotNone(t *testing.T) {
	set, revision := acceptedSet(t, "game")
	set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.SidecarSetAccepted, Status: metav1.ConditionTrue}}
	for name, value := range map[string]any{"generation": "x", "namespace": 1, "selector": "x"} {
		live := stored(broken(t, set, "status", "inForce", name, value))
		sets := newSets(t, nil, nil, live, revision)
		if choice, err := sets.Choose(t.Context(), "logs", gamePod(), "uid"); err == nil {
			t.Errorf("%s: the entry of the set: %+v, want an error", name, choice)
		}
		if choices, err := sets.ChooseBound(t.Context(), gamePod(), "uid", ""); err == nil {
			t.Errorf("%s: the entry of the group: %+v, want an error", name, choices)
		}
	}
}

// TestUnknownAcceptanceBesideAnotherSet checks that an injector that has restarted does not answer with one of two sets of a
// group if it does not know what was accepted of the other.
func TestUnknownAcceptanceBesideAnotherSet(t *testing.T) {
	logs, revision := acceptedSet(t, "game")
	logs.Status.ObservedGeneration = 1
	metrics, other := secondSet(t, logs)
	dropped, created := logs.DeepCopy(), logs.DeepCopy()
	dropped.Status.InForce = nil
	created.Status = v1alpha1.SidecarSetStatus{}
	elsewhere := dropped.DeepCopy()
	elsewhere.Spec.Namespace = "web"
	logs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.SidecarSetAccepted, Status: metav1.ConditionTrue}}
	for name, test := range map[string]struct {
		set     *v1alpha1.SidecarSet
		isError bool
	}{
		"isolated":                            {broken(t, logs, "status", "inForce", "generation", "x"), true},
		"dropped by OpenKruise":               {dropped, true},
		"dropped, bound to another namespace": {elsewhere, false},
		"new":                                 {created, false},
	} {
		accepted := new(acceptances)
		trimmed, err := accepted.trim(test.set)
		if err != nil {
			t.Fatal(err)
		}
		sets := newSets(t, trimmed.(*v1alpha1.SidecarSet), nil, interceptor.Funcs{}, revision, other) //nolint:forcetypeassert // It trims a set.
		if err := sets.sets.GetIndexer().Add(metrics); err != nil {
			t.Fatal(err)
		}
		choices, err := sets.ChooseBound(t.Context(), gamePod(), "uid", "")
		if (err != nil) != test.isError || err == nil && (len(choices) != 1 || choices[0].Set != "metrics") {
			t.Errorf("%s: %v, error %v, want an error: %t", name, choices, err, test.isError)
		}
	}
}

// TestNewSetsDoNotRefuse reads the sets of a namespace from the API server while a set that is not accepted yet, and has no
// entry, selects the pod, too.
func TestNewSetsDoNotRefuse(t *testing.T) {
	set, revision := acceptedSet(t, "game")
	created := set.DeepCopy()
	created.Name, created.UID, created.Status = "new", "new", v1alpha1.SidecarSetStatus{}
	choices, err := newSets(t, nil, set, interceptor.Funcs{}, created, revision).ChooseBound(t.Context(), gamePod(), "uid", "11")
	if err != nil || len(choices) != 1 || choices[0].Set != set.Name {
		t.Errorf("%v, error %v, want the set that is accepted", choices, err)
	}
	if choices, err := newSets(t, nil, nil, interceptor.Funcs{}, created).ChooseBound(t.Context(), gamePod(), "uid", "11"); err == nil {
		t.Errorf("%v, want an error: the entry is that of an earlier set of the name", choices)
	}
}

// TestIsolatedSetStaysPaused reads a paused set from the API server, of which the part that says so cannot be decoded.
func TestIsolatedSetStaysPaused(t *testing.T) {
	set, revision := acceptedSet(t, "game")
	set.Spec.InjectionStrategy.Paused = true
	set.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.SidecarSetInjecting, Status: metav1.ConditionFalse, Reason: "Paused"},
		{Type: v1alpha1.SidecarSetAccepted, Status: metav1.ConditionTrue},
	}
	live := stored(broken(t, set, "spec", "injectionStrategy", "revision", "x"))
	choice, err := newSets(t, nil, nil, live, revision).Choose(t.Context(), "logs", gamePod(), "uid")
	if err != nil || choice.Revision != nil {
		t.Errorf("%+v, error %v: want nothing", choice, err)
	}
}
