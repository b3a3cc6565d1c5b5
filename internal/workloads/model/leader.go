// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Planner is a planner of one kind of workload, as its controller calls it.
type Planner interface {
	// Plan returns the writes of one step. The view contains all objects of the namespace; the objects
	// are read-only. An error fails the run: no state of the cluster may cause one.
	Plan(view *State) (Step, error)
}

// Step is what a planner decides.
type Step struct {
	workload.Actions
	// Status returns the set with the status that is stored after the other writes, given those that
	// failed. The status is not written if it is equal to the stored one.
	Status func(failures []workload.Failure) Object
}

// errCrashed is the error of every write of a leader that has crashed.
var errCrashed = errors.New("the process has crashed")

// errLost is the error of a write whose response is lost, or which has not reached the API server.
var errLost = errors.New("connection reset by peer")

// leader is a process that runs the planner.
type leader struct {
	name    string
	world   *World
	cache   *cache
	own     written
	crashed bool
	// dirty reports that the next step may decide something new, wake is when it does for itself.
	dirty bool
	wake  time.Time

	taken map[string]bool

	view     *State
	failures []workload.Failure
	// ended reports that the step starts no more kinds of writes: a decision was outdated, the API
	// server did not answer, or a write failed that later ones depend on.
	ended bool
	// current reports whether the API server has the generation of the set that the step is based on. A
	// step compares them once.
	current func() bool
}

func (w *World) newLeader(lag func(Kind) int) *leader {
	w.leaders++
	w.trace("leader %d starts", w.leaders)
	return &leader{
		name: "leader " + strconv.Itoa(w.leaders), world: w, cache: newCache(w.store, lag), dirty: true,
		own: written{deleted: map[types.UID]string{}}, taken: map[string]bool{},
	}
}

// step plans once and writes, unless the cache lacks own writes. It reports whether it wrote.
func (l *leader) step() (wrote bool) {
	w := l.world
	if l.crashed || w.err != nil {
		return false
	}
	if !l.own.seen(l.cache) {
		w.trace("%s waits for its own writes", l.name)
		return false
	}
	l.view, l.failures, l.ended, l.dirty, l.wake = l.cache.state(), nil, false, false, time.Time{}
	if l.view.Set == nil {
		return false
	}
	l.view.Taken = l.taken
	l.current = sync.OnceValue(func() bool {
		return w.store.tables[Sets].objects[l.view.Set.GetName()].GetGeneration() == l.view.Set.GetGeneration()
	})
	step, err := w.config.Planner.Plan(l.view)
	if err != nil {
		w.fail(fmt.Errorf("plan: %w", err))
		return false
	}
	w.trace("%s plans: %s", l.name, summary(&step))
	for _, check := range w.config.Steps {
		if err := check(l.view, &step); err != nil {
			w.fail(fmt.Errorf("step of %s: %w", l.name, err))
			return false
		}
	}
	before := w.writes
	if l.execute(&step.Actions); !l.crashed && w.err == nil {
		l.status(step.Status(l.failures))
	}
	if step.RequeueAfter > 0 {
		l.wake = w.store.now.Add(step.RequeueAfter)
	}
	l.dirty = l.dirty || l.ended || len(l.failures) > 0
	return w.writes > before
}

// execute writes in the order that workload.Actions documents. A conflict or an error of the network
// ends it after the writes of the same kind. So does any error of a revision or claim, because pods
// depend on them.
func (l *leader) execute(a *workload.Actions) {
	if a.CreateRevision != nil {
		l.create(Revisions, a.CreateRevision)
	}
	for _, r := range a.UpdateRevisions {
		l.update(false, Revisions, "update", r, of(r), func(o Object) { replace(o, r) })
	}
	for _, r := range a.DeleteRevisions {
		l.delete(Revisions, r, "")
	}
	if l.ended || len(l.failures) > 0 {
		return
	}
	for _, c := range a.CreateClaims {
		l.create(Claims, c)
	}
	for _, c := range a.UpdateClaims {
		if !l.mayLeave(c) {
			continue
		}
		l.update(false, Claims, "update", c, of(c), func(o Object) { replace(o, c) })
	}
	if l.ended || len(l.failures) > 0 {
		return
	}
	for _, c := range a.ExpandClaims {
		l.update(true, Claims, "expand", c, of(c), func(o Object) { replace(o, c) })
	}
	for i := range a.Patches {
		l.patch(&a.Patches[i])
	}
	if l.ended {
		return
	}
	if len(a.Deletes) > 0 && !l.current() {
		l.outdated("the set has changed")
		return
	}
	for _, d := range a.Deletes {
		l.delete(Pods, d.Pod, d.Reason)
	}
	if l.ended {
		return
	}
	l.createPods(a.Creates)
}

// mayLeave reports whether a claim may become that of a pod: only of a pod that exists, and of the set that
// the step is based on.
func (l *leader) mayLeave(claim *corev1.PersistentVolumeClaim) bool {
	owner := workload.OwnerPod(claim)
	if owner == nil {
		return true
	}
	pod, err := l.world.store.read(Pods, owner.Name)
	if !l.current() || err != nil || pod.GetUID() != owner.UID {
		l.outdated("the set or pod " + owner.Name + " has changed")
		return false
	}
	return true
}

// outdated ends a step that is based on an old state.
func (l *leader) outdated(why string) {
	l.world.trace("%s: %s", l.name, why)
	l.ended = true
}

// createPods creates with slow start: after a batch with a failure, no further batch starts.
func (l *leader) createPods(pods []*corev1.Pod) {
	before := len(l.failures)
	for size := 1; len(pods) > 0 && !l.ended && len(l.failures) == before; size *= 2 {
		n := min(size, len(pods))
		for _, pod := range pods[:n] {
			l.create(Pods, pod)
		}
		pods = pods[n:]
	}
}

// create creates an object. One that this set has created before, with the same serial, is a
// success: an earlier response was lost.
func (l *leader) create(k Kind, o Object) {
	set := l.view.Set
	l.write(k, "create", o.GetName(), "", false, func(s *store) (Object, error) {
		created, err := s.create(k, o)
		if apierrors.IsAlreadyExists(err) {
			existing, readErr := s.read(k, o.GetName())
			if claim, ok := existing.(*corev1.PersistentVolumeClaim); ok {
				if workload.Leaves(claim) {
					return nil, apierrors.NewConflict(k.resource(), o.GetName(), errors.New("the claim leaves"))
				}
				return existing, nil
			}
			if readErr == nil && same(set, o, existing) {
				return existing, nil
			}
			if readErr == nil && !metav1.IsControlledBy(existing, set) {
				l.taken[o.GetName()] = true
			}
		}
		return created, err
	})
}

func same(set, wanted, existing Object) bool {
	return metav1.IsControlledBy(existing, set) && existing.GetDeletionTimestamp() == nil &&
		existing.GetAnnotations()[appsv1alpha1.PodSerialAnnotationKey] == wanted.GetAnnotations()[appsv1alpha1.PodSerialAnnotationKey]
}

func (l *leader) update(patch bool, k Kind, verb string, o Object, p preconditions, change func(Object)) (Object, bool) {
	return l.write(k, verb, o.GetName(), "", patch, func(s *store) (Object, error) {
		return s.update(k, o.GetName(), p, change)
	})
}

func (l *leader) delete(k Kind, o Object, reason string) {
	_, ok := l.write(k, "delete", o.GetName(), reason, false, func(s *store) (Object, error) {
		return nil, s.delete(k, o.GetName(), of(o))
	})
	if ok && k == Pods {
		l.own.deleted[o.GetUID()] = o.GetName()
	}
}

// patch executes the writes of one patch; each builds on the version of the one before it. Conditions
// and metadata are one write if nothing else changes.
func (l *leader) patch(p *workload.PodPatch) {
	if p.Controller == workload.Adopt && !l.current() {
		l.outdated("the set has changed")
		return
	}
	current, ok := Object(p.Pod), true
	metadata := len(p.Labels)+len(p.Annotations) > 0
	spec := len(p.Images) > 0 || p.Controller != workload.KeepController
	if len(p.Conditions) > 0 {
		current, ok = l.update(true, Pods, "patch status: "+p.Reason, p.Pod, of(current), func(o Object) {
			if setConditions(o.(*corev1.Pod), p.Conditions); metadata && !spec {
				l.change(o.(*corev1.Pod), p)
			}
		})
	}
	if ok && (spec || metadata && len(p.Conditions) == 0) {
		current, ok = l.update(true, Pods, "patch: "+p.Reason, p.Pod, of(current), func(o Object) {
			l.change(o.(*corev1.Pod), p)
		})
	}
	if ok && len(p.Resources) > 0 {
		l.update(true, Pods, "resize: "+p.Reason, p.Pod, of(current), func(o Object) {
			resize(o.(*corev1.Pod), p.Resources)
		})
	}
}

// status stores the status of the set.
func (l *leader) status(set Object) {
	if set == nil || encode(normalize(set)) == encode(l.view.Set) {
		return
	}
	l.write(Sets, "status", set.GetName(), "", false, func(s *store) (Object, error) {
		return s.update(Sets, set.GetName(), of(l.view.Set), func(o Object) { replaceStatus(o, set) })
	})
}

// write executes one write with the faults of the run. It reports whether the leader knows that it
// has succeeded.
func (l *leader) write(k Kind, verb, name, reason string, patch bool, do func(*store) (Object, error)) (Object, bool) {
	w := l.world
	fault := w.fault(l)
	var out Object
	err := errCrashed
	switch {
	case l.crashed || w.err != nil:
		return nil, false
	case fault == failedWrite:
		err = errLost
		w.trace("%s: %s %s %s: fails", l.name, verb, k, name)
	case fault == crashBefore:
		w.trace("%s crashes before %s %s %s", l.name, verb, k, name)
	default:
		err = w.apply(Write{By: l.name, View: l.view, Kind: k, Verb: verb, Name: name, Reason: reason}, func() error {
			var err error
			out, err = do(w.store)
			return err
		})
		w.writes++
		if fault == lostAnswer && err == nil {
			w.trace("  the response is lost")
			err = errLost
		}
	}
	if fault == crashBefore || fault == crashAfter {
		l.crashed = true
		return nil, false
	}
	if apierrors.IsConflict(err) || errors.Is(err, errLost) || verb != "create" && apierrors.IsNotFound(err) {
		l.ended = true
		return nil, false
	}
	if err != nil {
		l.failures = append(l.failures, workload.Failure{Update: patch, Object: k.String() + " " + name, Err: err})
		return nil, false
	}
	if out != nil {
		version, _ := strconv.ParseInt(out.GetResourceVersion(), 10, 64)
		l.own.versions[k] = max(l.own.versions[k], version)
	}
	return out, true
}
