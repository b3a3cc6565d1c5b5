// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
)

// removed is shown as the state of a row that no longer exists.
const removed = "Removed"

// change is a row that a watch prints. The JSON form is printed by -o json and others.
type change struct {
	metav1.TypeMeta `json:",inline"`
	probestatus.Row `json:",inline"`
	// Removed is true if the pod no longer exists or no longer has the probe. The row is the last
	// one.
	Removed bool `json:"removed,omitempty"`
}

// DeepCopyObject returns a copy that shares what the row points to.
func (c *change) DeepCopyObject() runtime.Object {
	copied := *c
	return &copied
}

func newChange(row probestatus.Row, isRemoved bool) change {
	return change{TypeMeta: printing.TypeMeta("ProbeState"), Row: row, Removed: isRemoved}
}

// changes returns what a watch prints: the rows that the flags select before or after the change,
// if the output differs.
func (o *options) changes(found []live.Change) []change {
	var shown []change
	for _, c := range found {
		before, after := c.Old != nil && o.selects(c.Old), c.New != nil && o.selects(c.New)
		switch {
		case !before && !after:
		case c.New == nil:
			shown = append(shown, newChange(*c.Old, true))
		case c.Old == nil || !o.looksEqual(c.Old, c.New):
			shown = append(shown, newChange(*c.New, false))
		}
	}
	return shown
}

// looksEqual reports whether two rows look equal in the table. Other formats show every field.
func (o *options) looksEqual(a, b *probestatus.Row) bool {
	return o.Output.IsTable() && slices.Equal(o.visible(a), o.visible(b))
}

// visible returns the cells of a row that the table shows, with times instead of ages.
func (o *options) visible(row *probestatus.Row) []any {
	cells := cellsOf(row, func(t metav1.Time) string { return t.UTC().Format(time.RFC3339Nano) })
	if o.Output.Output == "wide" {
		return cells
	}
	return cells[:narrowColumns]
}

// changeResult returns what is printed of changes. The object is that of a single change.
func changeResult(changes []change, allNamespaces bool, now time.Time) printing.Result {
	rows := make([]probestatus.Row, 0, len(changes))
	for i := range changes {
		rows = append(rows, changes[i].Row)
	}
	r := result(rows, allNamespaces, now)
	state := slices.IndexFunc(r.Columns, func(c metav1.TableColumnDefinition) bool { return c.Name == r.Colored })
	for i := range changes {
		if changes[i].Removed {
			r.Rows[i][state] = removed
		}
		// Otherwise, the first change of a state moves the columns.
		r.Rows[i][state] = fmt.Sprintf("%-*s", len(v1alpha1.ProbeSucceeded), r.Rows[i][state])
	}
	if len(changes) == 1 {
		r.Object = func() runtime.Object { return &changes[0] }
	}
	return r
}
