// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/model/apiserver"
)

// Planner is a planner of one kind of workload, as its controller calls it.
type Planner interface {
	// Plan returns the writes of one step. The view contains all objects of the namespace; the objects
	// are read-only. An error fails the run: no state of the cluster may cause one.
	Plan(view *State) (Step, error)
}

// Step is what a planner decides.
type Step struct {
	planning.Actions
	// Status returns the set with the status that is stored after the other writes, given those that
	// failed. The status is not written if it is equal to the stored one.
	Status func(failures []planning.Failure) Object
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

	executor *apply.Executor
	// view is what the step is based on, and deletes what it deletes.
	view    *State
	deletes []planning.PodDelete
}

func (w *World) newLeader(lag func(Kind) int) *leader {
	w.leaders++
	w.trace("leader %d starts", w.leaders)
	l := &leader{
		name: "leader " + strconv.Itoa(w.leaders), world: w, cache: newCache(w.store, lag), dirty: true,
		own: written{deleted: map[types.UID]string{}}, taken: map[string]bool{},
	}
	l.executor = apply.New(apply.Options{
		Client: server{leader: l}, Live: server{leader: l}, DeletePod: l.deletePod, Parallel: 1,
		Budget: time.Hour, Timeout: time.Hour, Now: w.Now, Wrote: func(string, string, string) {}, Failed: func(string) {},
	})
	return l
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
	l.view, l.dirty, l.wake = l.cache.state(), false, time.Time{}
	if l.view.Set == nil {
		return false
	}
	l.view.Taken = l.taken
	step, err := w.config.Planner.Plan(l.view)
	if err != nil {
		w.fail(fmt.Errorf("plan: %w", err))
		return false
	}
	w.trace(
		"%s plans %d patches, %d deletes and %d creates, and again after %s", l.name, len(step.Patches), len(step.Deletes),
		len(step.Creates), step.RequeueAfter,
	)
	for _, check := range w.config.Steps {
		if err := check(l.view, &step); err != nil {
			w.fail(fmt.Errorf("step of %s: %w", l.name, err))
			return false
		}
	}
	before := w.writes
	l.deletes = step.Deletes
	set := apply.Set{GroupVersionKind: l.view.Set.GetObjectKind().GroupVersionKind(), Object: l.view.Set}
	done := l.executor.Execute(context.Background(), set, &step.Actions)
	l.remember(&done)
	if !l.crashed && w.err == nil {
		l.status(step.Status(done.Failures))
	}
	if step.RequeueAfter > 0 {
		l.wake = w.store.now.Add(step.RequeueAfter)
	}
	l.dirty = l.dirty || !done.Succeeded()
	return w.writes > before
}

// remember remembers what the step wrote, until the cache has it.
func (l *leader) remember(done *apply.Outcome) {
	for k, version := range map[Kind]string{Pods: done.Pods, Claims: done.Claims, Revisions: done.Revisions} {
		l.own.raise(k, version)
	}
	for _, d := range l.deletes {
		if slices.Contains(done.Deleted, d.Pod.UID) {
			l.own.deleted[d.Pod.UID] = d.Pod.Name
		}
	}
	for _, name := range done.Taken {
		l.taken[name] = true
	}
}

func (l *leader) status(set Object) {
	if set == nil || encode(normalize(set)) == encode(l.view.Set) {
		return
	}
	stored, err := l.write(Sets, "status", set.GetName(), "", func() (Object, error) {
		return l.world.store.update(Sets, set.GetName(), apiserver.Of(l.view.Set), func(o Object) { replaceStatus(o, set) })
	})
	if l.dirty = l.dirty || err != nil; err == nil {
		l.own.raise(Sets, stored.GetResourceVersion())
	}
}

// write executes one write with the faults of the run, and returns the object after it.
func (l *leader) write(k Kind, verb, name, reason string, do func() (Object, error)) (Object, error) {
	w := l.world
	fault := w.fault(l)
	switch {
	case l.crashed || w.err != nil:
		return nil, errCrashed
	case fault == failedWrite:
		w.trace("%s: %s %s %s: fails", l.name, verb, k, name)
		return nil, errLost
	case fault == crashBefore:
		w.trace("%s crashes before %s %s %s", l.name, verb, k, name)
		l.crashed = true
		return nil, errCrashed
	}
	var out Object
	err := w.apply(Write{By: l.name, View: l.view, Kind: k, Verb: verb, Name: name, Reason: reason}, func() error {
		var err error
		out, err = do()
		return err
	})
	w.writes++
	switch {
	case fault == crashAfter:
		l.crashed = true
		return nil, errCrashed
	case err != nil:
		return nil, err
	case fault == lostAnswer:
		w.trace("  the response is lost")
		return nil, errLost
	default:
		return out, nil
	}
}

type fault int

const (
	noFault fault = iota
	failedWrite
	lostAnswer
	crashBefore
	crashAfter
)

// fault decides what happens to the next write of a leader, and lets events happen before it.
func (w *World) fault(l *leader) fault {
	if !w.chaos {
		return noFault
	}
	w.between(l)
	f := w.faults
	switch n := w.Rand.Float64(); {
	case n < f.Fail:
		return failedWrite
	case n < f.Fail+f.Lose:
		return lostAnswer
	case n < f.Fail+f.Lose+f.Crash/2:
		return crashBefore
	case n < f.Fail+f.Lose+f.Crash:
		return crashAfter
	}
	return noFault
}

// replaceStatus replaces the status only, as a write to the status subresource does.
func replaceStatus(o, by Object) {
	var wanted struct {
		Status json.RawMessage `json:"status,omitempty"`
	}
	if err := json.Unmarshal([]byte(encode(by)), &wanted); err != nil {
		panic(fmt.Sprintf("decode status: %v", err))
	}
	reflect.ValueOf(o).Elem().FieldByName("Status").SetZero()
	text, err := json.Marshal(wanted)
	if err == nil {
		err = json.Unmarshal(text, o)
	}
	if err != nil {
		panic(fmt.Sprintf("encode status: %v", err))
	}
}

// InputOf returns the input of a step with everything that a leader sees.
func InputOf(view *State) planning.Input {
	return planning.Input{
		Pods: view.Pods, Claims: view.Claims, Revisions: view.Revisions, TakenNames: view.Taken, Guards: builders.Guards(), Now: view.Now,
	}
}

// PlannerOf is the planner of a kind of sets, called as its controller does. S is a pointer to a set.
type PlannerOf[S Object, T any] struct {
	Descriptor planning.Descriptor[S, T]
	// Input returns the input of a step. It is InputOf if it is nil.
	Input func(view *State) planning.Input
}

// Plan checks that the planner does not change its input, that no step writes a pod twice or one that a guard protects, and, for one of
// five steps, that the planner decides the same about the pods of the cache as about complete pods.
func (p PlannerOf[S, T]) Plan(view *State) (Step, error) {
	if p.Input == nil {
		p.Input = InputOf
	}
	set, in := view.Set.(S), p.Input(view)
	before := set.DeepCopyObject()
	out, err := p.Descriptor.Plan(set, in)
	if err != nil {
		return Step{}, err
	}
	if !equality.Semantic.DeepEqual(before, Object(set)) {
		return Step{}, errors.New("Plan changed its input")
	}
	if view.Now.UnixNano()%5 == 0 {
		cached := in
		cached.Pods = make([]*corev1.Pod, len(in.Pods))
		for i, pod := range in.Pods {
			cached.Pods[i] = trim.Pod([]schema.GroupKind{p.Descriptor.GroupKind()})(pod)
		}
		trimmed, err := p.Descriptor.Plan(set, cached)
		if err != nil {
			return Step{}, err
		}
		if !equality.Semantic.DeepEqual(withoutPods(&out), withoutPods(&trimmed)) {
			return Step{}, fmt.Errorf("the step differs if pods are trimmed: %+v, want %+v", trimmed, out)
		}
	}
	return Step{Actions: out.Actions, Status: func(failures []planning.Failure) Object {
		next := set.DeepCopyObject().(S)
		status := out.Status
		p.Descriptor.Failed(&status, failures, view.Now)
		*p.Descriptor.Status(next) = status
		return next
	}}, errors.Join(once(&out.Actions), guarded(&out.Actions, in.Guards))
}

// guarded returns an error if the step deletes or restarts a pod that a guard protects.
func guarded(a *planning.Actions, guards guard.Guards) error {
	for i := range a.Deletes {
		if name := guards.Deletion(a.Deletes[i].Pod); name != "" {
			return fmt.Errorf("pod %s is deleted (%s), and guard %s protects it", a.Deletes[i].Pod.Name, a.Deletes[i].Reason, name)
		}
	}
	for i := range a.Patches {
		if name := guards.Update(a.Patches[i].Pod); name != "" && len(a.Patches[i].Images) > 0 {
			return fmt.Errorf("pod %s is updated, and guard %s protects it", a.Patches[i].Pod.Name, name)
		}
	}
	return nil
}

// withoutPods returns the step with only the names of the pods that it changes.
func withoutPods[T any](step *planning.Output[T]) planning.Output[T] {
	reduced := *step
	reduced.Patches, reduced.Deletes = slices.Clone(step.Patches), slices.Clone(step.Deletes)
	name := func(pod *corev1.Pod) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}} }
	for i := range reduced.Patches {
		reduced.Patches[i].Pod = name(reduced.Patches[i].Pod)
	}
	for i := range reduced.Deletes {
		reduced.Deletes[i].Pod = name(reduced.Deletes[i].Pod)
	}
	return reduced
}

// once returns an error if the step writes a pod twice.
func once(a *planning.Actions) error {
	seen := map[types.UID]bool{}
	for i := range a.Patches {
		if seen[a.Patches[i].Pod.UID] {
			return fmt.Errorf("pod %s is written twice", a.Patches[i].Pod.Name)
		}
		seen[a.Patches[i].Pod.UID] = true
	}
	for i := range a.Deletes {
		if seen[a.Deletes[i].Pod.UID] {
			return fmt.Errorf("pod %s is written twice", a.Deletes[i].Pod.Name)
		}
		seen[a.Deletes[i].Pod.UID] = true
	}
	return nil
}
