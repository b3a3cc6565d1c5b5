// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/permission"
	webui "github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// watching follows the namespaces of one scope: an empty one is all.
type watching struct {
	*live.Watch
	sets       *live.Sets
	query      cluster.Query
	namespaces []string
	full       bool
}

func newWatching(namespaces []string, full bool) *watching {
	query := cluster.Query{Controllers: true, Guards: true}
	if len(namespaces) == 1 {
		query.Namespace = namespaces[0]
	}
	w := &watching{Watch: live.NewWatch(query), query: query, namespaces: namespaces, full: full}
	w.sets = live.NewSets(w.Signal)
	return w
}

// resources returns what the page shows of the namespaces. Pods that have ended are not shown.
func (w *watching) resources() []live.Resource {
	var resources []live.Resource
	for _, namespace := range w.namespaces {
		query := w.query
		query.Namespace = namespace
		resources = append(resources, w.Namespaced(query, client.MatchingFieldsSelector{Selector: gather.LivePods()})...)
		resources = append(resources, w.sets.Resources(namespace)...)
	}
	if w.full {
		return append(resources, w.States(w.query)...)
	}
	for _, resource := range permission.States() {
		// It always returns nil.
		_ = w.Lacks(permission.Missing{Resource: resource})
	}
	return resources
}

// needs reports whether the page cannot show the scope without what is missing. OpenKruise has no ProbePlans.
func (w *watching) needs(missing permission.Missing) bool {
	return slices.Contains(append(permission.Required(), permission.States()...), missing.Resource) &&
		(missing.Verb != "" || missing.Resource != permission.PlanSlices)
}

// change returns what has changed. The first change has all pods and markers.
func (w *watching) change(first bool) webui.Change {
	stale, current := w.Take()
	change := webui.Change{All: first, Pods: model.PodsOf(stale.Snapshot.Pods, current.Rows)}
	// Those that do not exist, or have no probes.
	for _, pod := range stale.Pods {
		change.Removed = append(change.Removed, pod.String())
	}
	if first || stale.Markers {
		change.Markers = []model.Marker{}
		for _, m := range stale.Snapshot.Markers {
			change.Markers = append(change.Markers, model.MarkerOf(m, current.Invalid[client.ObjectKeyFromObject(m)]))
		}
	}
	if changed := w.sets.Changed(); first || changed {
		sets := model.SetsOf(w.sets.List(), w.note())
		change.Sets = &sets
	}
	return change
}

// note names the kinds of sets that the user may not read in the first namespace without all of them. Kinds that are not
// installed are not named.
func (w *watching) note() string {
	for _, namespace := range w.namespaces {
		var notes []string
		for _, kind := range live.SetKinds() {
			for _, missing := range w.sets.Unread {
				if missing.Verb != "" && missing.Namespace == namespace && string(missing.Resource) == kind.Definition() {
					notes = append(notes, missing.String())
				}
			}
		}
		if len(notes) > 0 {
			return strings.Join(notes, "; ")
		}
	}
	return ""
}
