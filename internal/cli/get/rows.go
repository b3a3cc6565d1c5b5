// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

const (
	// none is shown for a value that is not known.
	none = "-"
	// narrowColumns is the number of columns without -o wide, except the namespace.
	narrowColumns = 6
)

// stateNames returns the allowed values of --state.
func stateNames() []string {
	return []string{"succeeded", "failed", "unknown", "pending"}
}

// filter returns the rows that the flags select.
func (o *options) filter(rows []probestatus.Row) []probestatus.Row {
	return slices.DeleteFunc(rows, func(row probestatus.Row) bool { return !o.selects(&row) })
}

// selects reports whether the flags select the row.
func (o *options) selects(row *probestatus.Row) bool {
	marker, probe := o.selected.Marker, o.selected.Probe
	return (marker == "" || row.Marker == marker) && (probe == "" || row.Probe == probe) &&
		(len(o.states) == 0 || slices.Contains(o.states, strings.ToLower(row.Shown())))
}

// result returns what is printed. The rows are ordered.
func result(rows []probestatus.Row, allNamespaces bool, now time.Time) printing.Result {
	columns := printing.Table(false, "Pod", "Probe", "Container", "State", "Since", "Message")
	if allNamespaces {
		columns = slices.Concat(printing.Table(false, "Namespace"), columns)
	}
	// The column is without -o wide only where it says something.
	anyGuarded := slices.ContainsFunc(rows, func(row probestatus.Row) bool { return row.Guard != nil })
	r := printing.Result{
		Columns: slices.Concat(columns, printing.Table(true, "Node", "Last probe", "Source", "Marks"), printing.Table(!anyGuarded, "Guard")),
		Object:  func() runtime.Object { return printing.NewList("ProbeStateList", rows) },
		Colored: "State", Color: printing.Style,
	}
	for i := range rows {
		cells := cellsOf(&rows[i], func(t metav1.Time) string { return since(t, now) })
		if allNamespaces {
			cells = append([]any{rows[i].Namespace}, cells...)
		}
		r.Rows = append(r.Rows, cells)
		r.Names = append(r.Names, "pod/"+rows[i].Pod)
	}
	return r
}

// cellsOf returns the cells of a row. The function formats times.
func cellsOf(row *probestatus.Row, format func(metav1.Time) string) []any {
	var marks []string
	for _, mark := range row.Marks {
		marks = append(marks, mark.String())
	}
	return []any{
		row.Pod, identity.ID{Marker: row.Marker, Probe: row.Probe}.String(), row.Container, row.Shown(), format(row.LastTransitionTime), message(row),
		cmp.Or(row.Node, none), format(row.LastProbeTime), cmp.Or(string(row.Source), none), cmp.Or(strings.Join(marks, ","), none),
		guarded(row.Guard, format),
	}
}

// guarded returns the guard of a pod, and since when it protects the pod.
func guarded(guard *probestatus.Guard, format func(metav1.Time) string) string {
	if guard == nil {
		return none
	}
	return guard.Name + " " + format(guard.Since)
}

func since(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// message returns the message of the probe in one line, and the problem if there is one.
func message(row *probestatus.Row) string {
	text := strings.Join(strings.Fields(row.Message), " ")
	switch {
	case row.Problem == nil:
		return cmp.Or(text, none)
	case text == "":
		return row.Problem.Message
	default:
		return fmt.Sprintf("%s (%s)", text, row.Problem.Message)
	}
}

// warnings returns one warning per marker that has no effect, ordered by name.
func warnings(current probestatus.States) []string {
	keys := slices.SortedFunc(maps.Keys(current.Invalid), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	var all []string
	for _, key := range keys {
		all = append(all, fmt.Sprintf("Warning: PodProbeMarker %s has no effect: %v", key, current.Invalid[key]))
	}
	return all
}
