// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/mark"
)

// FuzzTrimReport fills every field of a ProbeReport from the seed. The trimmed one must have all
// fields of the pods except those that only agents read.
func FuzzTrimReport(f *testing.F) {
	for seed := range int64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		whole := &seamarkv1alpha1.ProbeReport{}
		randfill.NewWithSeed(seed).NilChance(0.2).NumElements(1, 4).MaxDepth(12).Funcs(
			func(e *metav1.ManagedFieldsEntry, c randfill.Continue) {
				e.Manager = []string{"seamark-agent", "kubectl-edit"}[c.Intn(2)]
				e.FieldsV1 = metav1.NewFieldsV1([]string{`{"f:pods":{}}`, `{"f:metadata":{"f:labels":{}}}`}[c.Intn(2)])
			},
		).Fill(whole)
		trimmed := view.TrimReport(whole)
		if diff := cmp.Diff(trimmed, view.TrimReport(trimmed)); diff != "" {
			t.Errorf("TrimReport is not idempotent (-once +twice):\n%s", diff)
		}
		if view.ChangedByOthers(whole) != view.ChangedByOthers(trimmed) {
			t.Errorf("ChangedByOthers = %t of the trimmed one", view.ChangedByOthers(trimmed))
		}
		want := whole.DeepCopy()
		want.TypeMeta = metav1.TypeMeta{}
		want.ObjectMeta = metav1.ObjectMeta{
			Name: whole.Name, UID: whole.UID, ResourceVersion: whole.ResourceVersion, ManagedFields: trimmed.ManagedFields,
		}
		report := mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{trimmed}}
		for i := range want.Pods {
			for j := range want.Pods[i].Probes {
				want.Pods[i].Probes[j].ContainerID = ""
			}
			if uid := types.UID(want.Pods[i].UID); !report.Of(uid).Reported {
				t.Errorf("no report about pod %s", uid)
			}
		}
		if diff := cmp.Diff(want, trimmed); diff != "" {
			t.Errorf("trimmed ProbeReport (-want +got):\n%s", diff)
		}
	})
}

func TestChangedByOthers(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager}
		if fields != "" {
			e.FieldsV1 = metav1.NewFieldsV1(fields)
		}
		return e
	}
	const pods, labels = `{"f:nodeName":{},"f:pods":{}}`, `{"f:metadata":{"f:labels":{"f:pods":{}}}}`
	cases := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"no writer":           {},
		"agent":               {entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.AgentFieldManager, pods)}},
		"labels of another":   {entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.AgentFieldManager, pods), entry("kubectl", `{"f:metadata":{"f:labels":{}}}`)}},
		"label named pods":    {entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.AgentFieldManager, pods), entry("kubectl", labels)}},
		"another":             {entries: []metav1.ManagedFieldsEntry{entry("kubectl", pods)}, want: true},
		"agent and another":   {entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.AgentFieldManager, pods), entry("kubectl", pods)}, want: true},
		"entry without field": {entries: []metav1.ManagedFieldsEntry{entry("kubectl", "")}},
		"invalid field":       {entries: []metav1.ManagedFieldsEntry{entry("kubectl", "{")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.entries}}
			for _, r := range []*seamarkv1alpha1.ProbeReport{report, view.TrimReport(report)} {
				if got := view.ChangedByOthers(r); got != tc.want {
					t.Errorf("ChangedByOthers = %t, want %t", got, tc.want)
				}
			}
		})
	}
}
