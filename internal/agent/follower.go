// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/worker"
	"github.com/seamark-dev/seamark/internal/logging"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/report"
)

// absenceGrace is how long the plan stays in force after its object has gone. An object
// deleted by mistake is made anew within moments, and no state is to be lost by that.
const absenceGrace = 30 * time.Second

// planRunner runs what is planned: a worker.Worker.
type planRunner interface {
	// SetPlan replaces the plan and calls inForce once it stands.
	SetPlan(probes []worker.Probe, inForce func())
}

// planReporter reports on the plan in force: a reporter.
type planReporter interface {
	// Announce tells of the plan that comes into force next.
	Announce(plan report.Plan)
	// InForce tells that the plan of object stands; nil stands for no object.
	InForce(object *v1alpha1.NodePodProbe)
	// Observe tells what is stored on the API server now; nil if nothing is.
	Observe(object *v1alpha1.NodePodProbe)
}

// follower puts the plan of the watched object in force.
type follower struct {
	watched *watched
	runner  planRunner
	report  planReporter
	log     logr.Logger

	// synced is whether a first plan is in force, and inForce its generation; probes
	// counts the probes of the newest.
	synced          atomic.Bool
	probes, inForce atomic.Int64

	// uid, generation and started are those of the plan handed on last.
	uid        types.UID
	generation int64
	started    bool
	problems   map[string]error
	// followed are the probes of the plan handed on last, those that can't be run among them.
	followed map[probeid.Key]bool
}

// run follows the object until ctx ends.
func (f *follower) run(ctx context.Context) {
	grace := time.NewTimer(absenceGrace)
	grace.Stop()
	defer grace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-grace.C:
			f.log.Info("Probing stops, the node has no NodePodProbe")
			f.put(nil)
		case <-f.watched.changed:
			object := f.watched.get()
			f.report.Observe(object)
			if object == nil && f.started {
				grace.Reset(absenceGrace)
				continue
			}
			grace.Stop()
			if f.started && object.UID == f.uid && object.Generation == f.generation {
				continue
			}
			f.put(object)
		}
	}
}

// put hands a plan on. States are restored from what is reported with the first one:
// later, the worker knows better.
func (f *follower) put(object *v1alpha1.NodePodProbe) {
	plan := planOf(object)
	var restored report.States
	if object != nil {
		f.uid, f.generation = object.UID, object.Generation
		if !f.started {
			restored = report.Restore(plan, object.Status)
		}
	} else {
		f.uid, f.generation = "", 0
	}
	f.started = true
	probes, problems := probesOf(plan, restored, f.followed)
	f.followed = make(map[probeid.Key]bool, len(probes))
	for i := range probes {
		f.followed[probes[i].Key] = true
	}
	f.complain(problems)
	f.probes.Store(int64(len(probes)))
	f.report.Announce(plan)
	f.log.V(logging.Decisions).Info("Plan changed", "generation", plan.Generation, "pods", len(plan.Pods), "probes", len(probes))
	f.runner.SetPlan(probes, func() {
		f.report.InForce(object)
		f.inForce.Store(plan.Generation)
		f.synced.Store(true)
	})
}

// complain logs each problem of a plan once.
func (f *follower) complain(problems map[string]error) {
	for name, err := range problems {
		if before := f.problems[name]; before == nil || before.Error() != err.Error() {
			pod, probe, _ := strings.Cut(name, " ")
			f.log.Error(err, "Probe can't be run", "pod", pod, "probe", probe)
		}
	}
	f.problems = problems
}

// watched holds the newest version of the one object that is watched. It is the store of
// a reflector.
type watched struct {
	mu     sync.Mutex
	object *v1alpha1.NodePodProbe
	// changed has a token when the object has changed, or its absence is first known.
	changed chan struct{}
}

func newWatched() *watched { return &watched{changed: make(chan struct{}, 1)} }

func (w *watched) get() *v1alpha1.NodePodProbe {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.object
}

func (w *watched) set(object *v1alpha1.NodePodProbe) {
	w.mu.Lock()
	w.object = object
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Add takes in a new object.
func (w *watched) Add(object any) error { return w.Update(object) }

// Update takes in a changed object.
func (w *watched) Update(object any) error {
	if npp, ok := object.(*v1alpha1.NodePodProbe); ok {
		w.set(npp)
	}
	return nil
}

// Delete takes in that the object has gone.
func (w *watched) Delete(any) error {
	w.set(nil)
	return nil
}

// Replace takes in a complete list, of at most one object.
func (w *watched) Replace(objects []any, _ string) error {
	if len(objects) == 0 {
		return w.Delete(nil)
	}
	return w.Update(objects[0])
}

// Resync does nothing: the follower needs no reminders.
func (w *watched) Resync() error { return nil }
