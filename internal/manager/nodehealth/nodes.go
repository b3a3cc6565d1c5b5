// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodehealth watches whether nodes and their agents are ready, and enqueues the pods whose
// states become stale, or are current again. Package staleness decides which these are.
//
// The controller does nothing until a marker has staleAfterSeconds or exclusive. Then it watches
// Nodes. It remembers a node, and has a timer for it, only while the states of the node are not
// current.
package nodehealth

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// Options are the dependencies of Nodes. All are required, except Namespace.
type Options struct {
	// Reader reads pods and markers from the cache.
	Reader gather.Reader
	// Informers start the watch of Nodes.
	Informers cache.Cache
	// Namespace is that of the agents. If it is empty, their pods are no evidence.
	Namespace string
	// Pods enqueues pods whose marks may be written at once.
	Pods *controllers.Inbox
	// Counted receives pods whose states become stale or current.
	Counted *controllers.Inbox
	// Limiter enqueues pods whose marks are written one after the other.
	Limiter *Limiter
	// Now is the clock.
	Now func() time.Time
}

// Nodes knows since when the states of nodes are not current.
type Nodes struct {
	Options
	// needed gets the queue when a marker needs the watch.
	start  sync.Once
	needed chan controllers.Queue
	synced atomic.Bool
	nodes  gather.Store
	// states are the nodes whose states are not current, and those whose pods must be enqueued.
	states keyed.Store[string, nodeState]
}

// nodeState is what is remembered of a node.
type nodeState struct {
	outage staleness.Outage
	// enqueued is the length of the outage up to which the pods have been enqueued. keptUnknown is whether pods may
	// have kept the marks of Unknown, because it was not known whether their states were stale.
	enqueued    time.Duration
	keptUnknown bool
}

// New returns Nodes that does not watch yet.
func New(options Options) *Nodes {
	return &Nodes{Options: options, needed: make(chan controllers.Queue, 1)}
}

// Outage returns the outage of the node now. Until the Nodes are known, that is one with the cause NotChecked.
func (n *Nodes) Outage(node string) staleness.Outage {
	switch {
	case node == "":
		return staleness.Outage{}
	case !n.synced.Load():
		return staleness.Outage{Cause: staleness.NotChecked}
	default:
		return n.decide(node, n.Now()).outage
	}
}

// Count returns the number of nodes whose states are not current, for the cause.
func (n *Nodes) Count(cause staleness.Cause) (count int) {
	n.states.Each(func(_ string, k nodeState) {
		if k.outage.Cause == cause {
			count++
		}
	})
	return count
}

// decide decides the outage of the node at the time now.
func (n *Nodes) decide(node string, now time.Time) (decided nodeState) {
	evidence := n.evidence(node)
	n.states.Update(node, func(k *nodeState) bool {
		k.outage = staleness.Decide(k.outage, evidence, now)
		k.keptUnknown = k.keptUnknown || k.outage.MayBeLonger()
		decided = *k
		return k.outage.Cause != "" || k.enqueued > 0 || k.keptUnknown
	})
	return decided
}

func (n *Nodes) evidence(name string) staleness.Evidence {
	var e staleness.Evidence
	if object, found, err := n.nodes.GetIndexer().GetByKey(name); err == nil && found {
		if node, ok := object.(*corev1.Node); ok {
			e.Node = podview.NodeReadiness(node)
		}
	}
	if n.Namespace == "" {
		if e.Node != nil {
			e.Node.Agentless = true
		}
		return e
	}
	for _, pod := range n.Reader.Agents(name) {
		e.Agents = append(e.Agents, podview.AgentReadiness(pod))
	}
	return e
}

// Reconcile enqueues the pods of the requested node whose states have become stale or current since the
// last time.
func (n *Nodes) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !n.synced.Load() {
		// Then all nodes are enqueued.
		return reconcile.Result{}, nil
	}
	now := n.Now()
	node := n.decide(request.Name, now)
	if node == (nodeState{}) {
		return reconcile.Result{}, nil
	}
	pods, err := n.pods(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	// Those whose states have become stale, or if the outage is over, those whose states were.
	low, high := node.enqueued, node.outage.Length
	if node.outage.Cause == "" {
		low, high = 0, node.enqueued
	}
	var afters []time.Duration
	stale := 0
	for _, pod := range pods {
		afters = append(afters, pod.afters...)
		switch {
		case slices.ContainsFunc(pod.afters, func(after time.Duration) bool { return low < after && after <= high }):
			stale++
			n.Limiter.Ask(pod.name)
			n.Counted.Enqueue(pod.name)
		case node.keptUnknown && !node.outage.MayBeLonger():
			n.Pods.Enqueue(pod.name)
			n.Counted.Enqueue(pod.name)
		}
	}
	if stale > 0 {
		log.FromContext(ctx).Info(message(node.outage), "pods", stale, "cause", node.outage.Cause, "since", node.outage.Since)
	}
	n.states.Update(request.Name, func(k *nodeState) bool {
		k.enqueued, k.keptUnknown = max(k.enqueued, high), node.outage.MayBeLonger()
		if node.outage.Cause == "" {
			k.enqueued = 0
		}
		return k.outage.Cause != "" || k.enqueued > 0 || k.keptUnknown
	})
	return reconcile.Result{RequeueAfter: node.outage.NextCheck(afters, now)}, nil
}

func message(l staleness.Outage) string {
	if l.Cause == "" {
		return "States of node are current again"
	}
	return "States of node became stale"
}

// stalePod is a pod with probes whose states become stale.
type stalePod struct {
	name types.NamespacedName
	// afters are the times after which they do.
	afters []time.Duration
}

// pods returns the pods of the node with probes whose states become stale.
func (n *Nodes) pods(ctx context.Context, node string) ([]stalePod, error) {
	pods, err := n.Reader.NodePods(ctx, node)
	if err != nil {
		return nil, err
	}
	markers := make(map[string][]*plan.Marker)
	var found []stalePod
	for _, pod := range pods {
		of, read := markers[pod.Namespace]
		if !read {
			all, err := n.Reader.Markers(ctx, pod.Namespace)
			if err != nil {
				return nil, err
			}
			of = slices.DeleteFunc(all, func(m *plan.Marker) bool { return len(m.StaleAfters()) == 0 })
			markers[pod.Namespace] = of
		}
		if plan.Ending(pod) {
			continue
		}
		afters := sets.New[time.Duration]()
		for _, marker := range of {
			if marker.Selects(pod) {
				afters.Insert(marker.StaleAfters()...)
			}
		}
		if len(afters) > 0 {
			found = append(found, stalePod{name: client.ObjectKeyFromObject(pod), afters: afters.UnsortedList()})
		}
	}
	return found, nil
}
