// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/marking/probestatus"
)

// Change is a row that was added, changed or removed.
type Change struct {
	// Old is the row before the change, or nil if it is new.
	Old *probestatus.Row
	// New is the row after the change, or nil if the pod no longer exists or no longer has the probe.
	New *probestatus.Row
}

// table has the rows by pod.
type table map[types.NamespacedName][]probestatus.Row

// apply replaces the rows of the pods, and returns the changes in the order of the rows. The rows are
// those of probestatus.List for the pods; rows of other pods stay.
func (t table) apply(pods []types.NamespacedName, rows []probestatus.Row) []Change {
	byPod := make(table, len(pods))
	for i := range rows {
		key := types.NamespacedName{Namespace: rows[i].Namespace, Name: rows[i].Pod}
		byPod[key] = append(byPod[key], rows[i])
	}
	slices.SortFunc(pods, compareNames)
	var changes []Change
	for _, pod := range pods {
		changes = append(changes, diff(t[pod], byPod[pod])...)
		if len(byPod[pod]) == 0 {
			delete(t, pod)
		} else {
			t[pod] = byPod[pod]
		}
	}
	return changes
}

// all returns all rows in the order of probestatus.List.
func (t table) all() []probestatus.Row {
	var all []probestatus.Row
	for _, pod := range slices.SortedFunc(maps.Keys(t), compareNames) {
		all = append(all, t[pod]...)
	}
	return all
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// diff returns the changes from the old to the new rows of one pod.
func diff(before, after []probestatus.Row) []Change {
	var changes []Change
	for i := range after {
		old := find(before, &after[i])
		if old == nil || !equality.Semantic.DeepEqual(*old, after[i]) {
			changes = append(changes, Change{Old: old, New: &after[i]})
		}
	}
	for i := range before {
		if find(after, &before[i]) == nil {
			changes = append(changes, Change{Old: &before[i]})
		}
	}
	return changes
}

// find returns the row of the same probe, or nil.
func find(rows []probestatus.Row, like *probestatus.Row) *probestatus.Row {
	for i := range rows {
		if row := &rows[i]; row.Marker == like.Marker && row.Probe == like.Probe && row.Container == like.Container {
			return row
		}
	}
	return nil
}
