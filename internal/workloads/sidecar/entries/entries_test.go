// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

// server is where the injectors are.
func server() entries.Server {
	return entries.Server{Namespace: "seamark-system", Client: admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "seamark-system", Name: "injector"},
	}}
}

// set returns an accepted set.
func set(name string, edit func(*v1alpha1.SidecarSetInForce)) *v1alpha1.SidecarSet {
	s := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	s.Status.InForce = &v1alpha1.SidecarSetInForce{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}}
	if edit != nil {
		edit(s.Status.InForce)
	}
	return s
}

func TestEntry(t *testing.T) {
	const fail, ignore, never, again = "Fail", "Ignore", "Never", "IfNeeded"
	for name, test := range map[string]struct {
		edit                  func(*v1alpha1.SidecarSet)
		namespaces            string
		failure, reinvocation string
	}{
		"all namespaces": {edit: func(*v1alpha1.SidecarSet) {}, failure: fail, reinvocation: never},
		"one namespace": {
			edit:       func(s *v1alpha1.SidecarSet) { s.Status.InForce.Namespace = "games" },
			namespaces: "kubernetes.io/metadata.name in (games),", failure: fail, reinvocation: never,
		},
		"namespace and selector": {
			edit: func(s *v1alpha1.SidecarSet) {
				s.Status.InForce.Namespace = "games"
				s.Status.InForce.NamespaceSelector = &metav1.LabelSelector{
					MatchLabels:      map[string]string{"b": "2", "a": "1"},
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpExists}},
				}
			},
			namespaces: "a in (1),b in (2),c,kubernetes.io/metadata.name in (games),", failure: fail, reinvocation: never,
		},
		"optional": {
			edit: func(s *v1alpha1.SidecarSet) {
				s.Annotations = map[string]string{v1alpha1.InjectionFailurePolicyKey: "Ignore"}
			},
			failure: ignore, reinvocation: never,
		},
		"inherits": {edit: func(s *v1alpha1.SidecarSet) { s.Status.InForce.Inherits = true }, failure: fail, reinvocation: again},
	} {
		t.Run(name, func(t *testing.T) {
			logs := set("logs", nil)
			test.edit(logs)
			at := server()
			got := at.Entry(logs)
			want := test.namespaces + "kubernetes.io/metadata.name notin (kube-system,seamark-system)"
			if diff := cmp.Diff(want, metav1.FormatLabelSelector(got.NamespaceSelector)); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
			if string(*got.FailurePolicy) != test.failure || string(*got.ReinvocationPolicy) != test.reinvocation {
				t.Errorf("failure policy %s, reinvocation %s, want %s and %s", *got.FailurePolicy, *got.ReinvocationPolicy, test.failure, test.reinvocation)
			}
			if got.Name != "logs.sidecarsets.seamark.dev" || *got.ClientConfig.Service.Path != "/inject/logs" || !cmp.Equal(got.ObjectSelector, logs.Status.InForce.Selector) {
				t.Errorf("entry %+v", got)
			}
			if at.Client.Service.Path != nil {
				t.Error("the argument changed")
			}
		})
	}
}

// bound is an edit that binds a set to a namespace.
func bound(namespace string) func(*v1alpha1.SidecarSetInForce) {
	return func(f *v1alpha1.SidecarSetInForce) { f.Namespace = namespace }
}

// names returns the names of the entries of each configuration.
func names(plan entries.Plan) (own, groups int, all map[string]int) {
	all = map[string]int{}
	for i, list := range plan.Lists {
		for _, entry := range list {
			if strings.HasSuffix(entry.Name, ".sidecarsetgroups.seamark.dev") {
				groups++
			} else {
				own++
			}
			all[entry.Name] = i
		}
	}
	return own, groups, all
}

func TestPlaces(t *testing.T) {
	at, created := server(), metav1.Now()
	var sets []*v1alpha1.SidecarSet
	add := func(name string, edit func(*v1alpha1.SidecarSetInForce)) *v1alpha1.SidecarSet {
		s := set(name, edit)
		s.CreationTimestamp = metav1.NewTime(created.Add(time.Duration(len(sets)) * time.Second))
		sets = append(sets, s)
		return s
	}
	for i := range 256 {
		add(fmt.Sprintf("own-%d", i), nil)
	}
	first := at.Plan(sets, entries.Lists{})
	if own, groups, _ := names(first); own != 256 || groups != 0 || len(first.TooMany) != 0 || len(first.Entered) != 256 {
		t.Fatalf("%d own entries, %d groups, %d sets without a place", own, groups, len(first.TooMany))
	}
	wide, narrow := add("wide", nil), add("narrow", bound("games"))
	optional := add("optional", bound("games"))
	optional.Annotations = map[string]string{v1alpha1.InjectionFailurePolicyKey: "Ignore"}
	second := at.Plan(sets, first.Lists)
	own, groups, before := names(second)
	if own != 256 || groups != 2 || !second.TooMany[wide.UID] || !second.Entered[narrow.UID] || !second.Entered[optional.UID] {
		t.Errorf("%d own entries, %d groups, wide %t, narrow %t", own, groups, second.TooMany[wide.UID], second.Entered[narrow.UID])
	}
	// The set that waits longest gets the place of one that is gone, and the others keep theirs.
	third := at.Plan(sets[1:], second.Lists)
	_, _, after := names(third)
	for name, place := range after {
		if old, found := before[name]; found && old != place && !strings.HasPrefix(name, "fail-") && !strings.HasPrefix(name, "ignore-") {
			t.Errorf("%s moved from %d to %d", name, old, place)
		}
	}
	if !third.Entered[wide.UID] || third.TooMany[wide.UID] {
		t.Error("the free place is not used")
	}
	for _, idle := range []func(*v1alpha1.SidecarSet){
		func(s *v1alpha1.SidecarSet) { s.Spec.InjectionStrategy.Paused = true },
		func(s *v1alpha1.SidecarSet) { s.Status.InForce = nil },
		func(s *v1alpha1.SidecarSet) { s.DeletionTimestamp = &created },
	} {
		s := set("idle", nil)
		idle(s)
		if plan := at.Plan([]*v1alpha1.SidecarSet{s}, first.Lists); len(plan.Entered)+len(plan.TooMany) > 0 {
			t.Errorf("entries %v for a set that injects nothing", plan.Entered)
		}
	}
}

// TestBounds checks that no configuration reaches the size that etcd refuses, with as many sets of the largest
// size as there are places.
func TestBounds(t *testing.T) {
	const limit = 1 << 20
	large := func(namespace string) func(*v1alpha1.SidecarSetInForce) {
		return func(f *v1alpha1.SidecarSetInForce) {
			f.Namespace = namespace
			f.Selector = &metav1.LabelSelector{}
			for len(f.Selector.MatchExpressions) < 8 {
				f.Selector.MatchExpressions = append(f.Selector.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: fmt.Sprintf("key-%d", len(f.Selector.MatchExpressions)), Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{strings.Repeat("v", 60)}, 11),
				})
			}
		}
	}
	if size := entries.Size(set("a", large("n"))); size > entries.MaxBytes || size < entries.MaxBytes/2 {
		t.Fatalf("%d bytes for an entry, want nearly %d", size, entries.MaxBytes)
	}
	var sets []*v1alpha1.SidecarSet
	for i := range 9000 {
		edit := bound(fmt.Sprintf("namespace-%d", i))
		if i < 700 {
			edit = large(fmt.Sprintf("namespace-%d", i))
		}
		sets = append(sets, set(fmt.Sprintf("set-%04d", i), edit))
	}
	plan := server().Plan(sets, entries.Lists{})
	own, groups, _ := names(plan)
	if own != 256 || groups != 64 || len(plan.Entered)+len(plan.TooMany) != len(sets) {
		t.Errorf("%d own entries, %d groups, %d and %d sets", own, groups, len(plan.Entered), len(plan.TooMany))
	}
	for i, list := range plan.Lists {
		if encoded, err := json.Marshal(list); err != nil || len(encoded) > limit {
			t.Errorf("configuration %d has %d bytes, error %v, want at most %d", i, len(encoded), err, limit)
		}
	}
}
