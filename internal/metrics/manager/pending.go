// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// wait is a plan that its agent has not put in force.
type wait struct {
	// uid is the NodePodProbe.
	uid types.UID
	// observed is the generation that the agent has in force.
	observed int64
	// since is when a newer one was first seen beside it.
	since time.Time
}

// Pending knows how long nodes wait for their agents: since when a newer plan stands than
// the one in force. An agent that puts any newer plan in force makes the wait begin anew,
// so that a busy one that is a step behind is not taken for one that is stuck. It takes in
// the events of an informer of NodePodProbes, and keeps what waits alone.
type Pending struct {
	now func() time.Time

	mu    sync.Mutex
	waits map[string]wait
}

var _ toolscache.ResourceEventHandler = (*Pending)(nil)

// NewPending returns a Pending to which no node waits. Now is its clock.
func NewPending(now func() time.Time) *Pending {
	return &Pending{now: now, waits: make(map[string]wait)}
}

// OnAdd takes in a NodePodProbe that is new, or that the informer found at its start:
// its wait counts from then.
func (p *Pending) OnAdd(object any, _ bool) { p.see(object) }

// OnUpdate takes in a changed NodePodProbe.
func (p *Pending) OnUpdate(_, object any) { p.see(object) }

// OnDelete takes in that a NodePodProbe has gone.
func (p *Pending) OnDelete(object any) {
	if unseen, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unseen.Obj
	}
	if npp, ok := object.(*v1alpha1.NodePodProbe); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waits, npp.Name)
	}
}

func (p *Pending) see(object any) {
	npp, ok := object.(*v1alpha1.NodePodProbe)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if inForce(npp) {
		delete(p.waits, npp.Name)
		return
	}
	before, waits := p.waits[npp.Name]
	if waits && before.uid == npp.UID && before.observed == npp.Status.ObservedGeneration {
		return
	}
	p.waits[npp.Name] = wait{uid: npp.UID, observed: npp.Status.ObservedGeneration, since: p.now()}
}

// Ages returns how long each node that waits has waited.
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
