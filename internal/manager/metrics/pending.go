// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// wait is a plan that its agent does not run yet.
type wait struct {
	uid types.UID
	// observed is the generation that the agent runs.
	observed int64
	// since is when a newer generation was first seen.
	since time.Time
}

// Pending tracks how long each node's agent has not run the latest plan. The wait restarts
// when the agent advances to any newer plan, so that an agent that is busy but keeps up is
// not reported as stuck. It handles the events of the informers of NodePodProbes and ProbePlans and
// stores only nodes that wait.
type Pending struct {
	now func() time.Time
	// plan returns the NodePodProbe of a node with the whole plan, or nil if there is none.
	plan func(node string) *v1alpha1.NodePodProbe

	mu    sync.Mutex
	waits map[string]wait
}

var _ toolscache.ResourceEventHandler = (*Pending)(nil)

// NewPending returns a Pending without waiting nodes. Now is its clock. The function returns the
// NodePodProbe of a node with the whole plan, or nil if there is none.
func NewPending(now func() time.Time, plan func(node string) *v1alpha1.NodePodProbe) *Pending {
	return &Pending{now: now, plan: plan, waits: make(map[string]wait)}
}

// OnAdd handles an object that is new or that the informer listed at its start. The wait of its node
// starts now.
func (p *Pending) OnAdd(object any, _ bool) { p.see(object) }

// OnUpdate handles a changed object.
func (p *Pending) OnUpdate(_, object any) { p.see(object) }

// OnDelete handles a deleted object.
func (p *Pending) OnDelete(object any) {
	if unseen, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unseen.Obj
	}
	p.see(object)
}

func (p *Pending) see(object any) {
	var node string
	switch object := object.(type) {
	case *v1alpha1.NodePodProbe:
		node = object.Name
	case *seamarkv1alpha1.ProbePlan:
		node = object.NodeName
	default:
		return
	}
	npp := p.plan(node)
	p.mu.Lock()
	defer p.mu.Unlock()
	if npp == nil || inForce(npp) {
		delete(p.waits, node)
		return
	}
	before, waits := p.waits[node]
	if waits && before.uid == npp.UID && before.observed == npp.Status.ObservedGeneration {
		return
	}
	p.waits[node] = wait{uid: npp.UID, observed: npp.Status.ObservedGeneration, since: p.now()}
}

// Ages returns how long each waiting node has waited.
func (p *Pending) Ages() map[string]time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	ages := make(map[string]time.Duration, len(p.waits))
	for node, w := range p.waits {
		ages[node] = now.Sub(w.since)
	}
	return ages
}
