// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/marking/exclusive"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
)

// elections are those of the markers that have exclusive policies and select pods, by namespace. The reconciles of the
// pods report to them: those of one namespace wait for each other. The zero value is ready for use.
type elections struct {
	mu         sync.Mutex
	namespaces map[string]*electorate
}

// electorate has the elections of a namespace, by marker. It is gone when it has no election.
type electorate struct {
	sync.Mutex
	elections map[string]*election
	gone      bool
}

// election is that of one generation of a marker.
type election struct {
	*exclusive.Election
	uid        types.UID
	generation int64
}

// lock returns the locked elections of the namespace, or nil if there are none and none is to be created.
func (e *elections) lock(namespace string, create bool) *electorate {
	for {
		e.mu.Lock()
		found := e.namespaces[namespace]
		if found == nil && create {
			found = &electorate{elections: make(map[string]*election)}
			if e.namespaces == nil {
				e.namespaces = make(map[string]*electorate)
			}
			e.namespaces[namespace] = found
		}
		e.mu.Unlock()
		if found == nil {
			return nil
		}
		if found.Lock(); !found.gone {
			return found
		}
		found.Unlock()
	}
}

// unlock unlocks the elections of the namespace, and forgets them if there are none.
func (e *elections) unlock(namespace string, found *electorate) {
	if len(found.elections) == 0 {
		found.gone = true
		e.mu.Lock()
		delete(e.namespaces, namespace)
		e.mu.Unlock()
	}
	found.Unlock()
}

// report reports what the pod is in its contests, and sets their results. It returns other pods whose marks have to be looked
// at: if the election of a marker begins, all of them. list returns the pods of a namespace.
func (e *elections) report(
	ctx context.Context, v podview.Pod, markers []*plan.Marker, list func(ctx context.Context, namespace string) ([]*corev1.Pod, error),
) ([]types.NamespacedName, error) {
	pod, as := v.Object, v.Candidates()
	in := e.lock(pod.Namespace, len(as) > 0)
	if in == nil {
		return nil, nil
	}
	defer e.unlock(pod.Namespace, in)
	fresh := slices.DeleteFunc(slices.Clone(markers), func(marker *plan.Marker) bool {
		last := in.elections[marker.Name]
		return as[marker.Name] == nil || last != nil && last.uid == marker.UID && last.generation == marker.Generation
	})
	var others []string
	if len(fresh) > 0 {
		all, err := list(ctx, pod.Namespace)
		if err != nil {
			return nil, err
		}
		for _, marker := range fresh {
			others = append(others, in.begin(marker, pod.Name, all)...)
		}
	}
	others = append(others, in.leave(pod.Name, as)...)
	for marker, candidates := range as {
		others = append(others, in.elections[marker].Report(pod.Name, candidates)...)
	}
	for _, c := range v.Contests {
		if election := in.elections[c.ID.Marker]; c.Grouped && election != nil {
			c.Result = election.Result(c.Seat())
		}
	}
	return named(pod.Namespace, others), nil
}

// gone removes the pod from all elections, and returns other pods whose marks have to be looked at.
func (e *elections) gone(pod types.NamespacedName) []types.NamespacedName {
	in := e.lock(pod.Namespace, false)
	if in == nil {
		return nil
	}
	defer e.unlock(pod.Namespace, in)
	return named(pod.Namespace, in.leave(pod.Name, nil))
}

// begin begins the election of the marker, and returns the pods that have to report besides the one that does it now.
func (in *electorate) begin(marker *plan.Marker, reports string, all []*corev1.Pod) []string {
	var names []string
	for _, pod := range all {
		if pod.Name != reports && marker.Selects(pod) {
			names = append(names, pod.Name)
		}
	}
	in.elections[marker.Name] = &election{Election: exclusive.NewElection(names...), uid: marker.UID, generation: marker.Generation}
	return names
}

// leave removes the pod from the elections except those in which it is, and returns other pods whose marks have to be looked at.
func (in *electorate) leave(pod string, as map[string]map[exclusive.Seat]exclusive.Candidate) []string {
	var others []string
	for marker, election := range in.elections {
		if as[marker] != nil {
			continue
		}
		others = append(others, election.Leave(pod)...)
		if election.IsEmpty() {
			delete(in.elections, marker)
		}
	}
	return others
}

// named returns the names with the namespace.
func named(namespace string, names []string) []types.NamespacedName {
	all := make([]types.NamespacedName, 0, len(names))
	for _, name := range names {
		all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return all
}
