// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/pace"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// loop is the state that the worker's goroutine owns.
type loop struct {
	options Options
	// origin is when the worker was created. All phases refer to it.
	origin time.Time
	post   func(job func(now time.Time))

	// synced reports whether all containers are known.
	synced     bool
	entries    map[identity.Key]*entry
	members    map[identity.ContainerKey]map[identity.Key]*entry
	containers map[identity.ContainerKey]thresholds.ContainerRun
	// unknown contains the containers that the runtime cannot describe.
	unknown  map[identity.ContainerKey]bool
	inFlight map[identity.Key]*flight
	// queue contains the probes that become due, and pacer those that are.
	queue queue
	pacer *pace.Pacer
}

// entry is one probe of the plan.
type entry struct {
	task      Task
	evaluator *thresholds.Evaluator
	// startup evaluates the startup probe of the container. It is nil if the probe does not wait
	// for it.
	startup *thresholds.Evaluator
	// sighting is when the run of the container was seen first.
	sighting sighting
	// moved is set while the state comes from the same probe in another container.
	moved bool
	// due and index are the entry's position in the queue. The index is -1 if it is not
	// in the queue.
	due   time.Time
	index int
	// paced is set while the entry, which became due at due, is in the pacer.
	paced paced
	// cost is what the last runs cost, with all their requests.
	cost int
	// slowed is how the probe was slowed last.
	slowed slowed
}

// flight is one run of a probe.
type flight struct {
	cancel context.CancelFunc
	// stale is set if the result no longer applies.
	stale bool
	// startup is set for a run of the startup probe of the container.
	startup bool
	// began is when the run was due and within the rates. started is set when it has a slot, by the goroutine of the
	// run, and late if it had none for lateAfter periods.
	began   time.Time
	started atomic.Bool
	late    bool
	// slowed is the rate that the run waited for, if it began a period or more too late.
	slowed pace.Limit
	// cost is what the run has cost so far, as pace.Cost counts.
	cost atomic.Int64
}

func (l *loop) setPlan(now time.Time, tasks []Task) {
	removed := l.removeUnplanned(tasks)
	l.pacer.Forget(now)
	added := make(map[identity.Key]bool, len(tasks))
	for i := range tasks {
		task := &tasks[i]
		if added[task.Key] {
			continue
		}
		added[task.Key] = true
		if e, found := l.entries[task.Key]; found {
			l.edit(now, e, task)
			continue
		}
		l.add(now, task, removed)
	}
}

// inPod identifies a probe in a pod, whatever its container.
type inPod struct {
	pod types.UID
	id  identity.ID
}

func inPodOf(key identity.Key) inPod { return inPod{pod: key.PodUID, id: key.ID} }

// removeUnplanned removes the probes that the tasks lack, and those of an earlier marker with
// the same name or of another static pod, and returns them.
func (l *loop) removeUnplanned(tasks []Task) map[inPod]*entry {
	wanted := make(map[identity.Key]*Task, len(tasks))
	for i := range tasks {
		wanted[tasks[i].Key] = &tasks[i]
	}
	removed := map[inPod]*entry{}
	for key, e := range l.entries {
		if task := wanted[key]; task == nil || task.RuntimeUID != e.task.RuntimeUID || !identity.SamePlan(e.task.Plan, task.Plan) {
			l.remove(key, e)
			removed[inPodOf(key)] = e
		}
	}
	return removed
}

// add adds a probe to the plan. A probe that the plan moves to another container keeps its
// state.
func (l *loop) add(now time.Time, task *Task, removed map[inPod]*entry) {
	var phase thresholds.Phase
	if l.options.Phase != nil {
		phase = thresholds.Phase{Origin: l.origin, Offset: l.options.Phase(task.Key)}
	}
	e := &entry{task: *task, evaluator: thresholds.Restore(task.Policy, phase, task.Restored), index: -1}
	if old, found := removed[inPodOf(task.Key)]; found && identity.SamePlan(old.task.Plan, task.Plan) {
		e.evaluator.Move(old.evaluator.State())
		e.moved = true
	}
	l.entries[task.Key] = e
	if l.members[task.container()] == nil {
		l.members[task.container()] = map[identity.Key]*entry{}
	}
	l.members[task.container()][task.Key] = e
	l.announce(e, nil)
	if l.synced {
		l.resolve(now, e)
	}
}

// edit applies the changes of one probe.
func (l *loop) edit(now time.Time, e *entry, task *Task) {
	// A command does not use the address of the pod.
	moved := e.task.PodIP != task.PodIP && task.Handler.Exec == nil
	handler := !equality.Semantic.DeepEqual(e.task.Handler, task.Handler)
	timed := e.task.Target.Timeout != task.Target.Timeout
	published := e.task.Target.HTTP != nil && task.Target.HTTP != nil &&
		e.task.Target.HTTP.PublishBody != task.Target.HTTP.PublishBody
	edited := handler || moved || timed || published || e.task.Policy != task.Policy
	waits := !e.task.Startup.equal(task.Startup)
	moved = moved || e.task.PodIP != task.PodIP && task.Startup != nil
	e.task = *task
	if waits {
		l.discard(task.Key)
		e.close(now, false)
		l.enqueue(e)
	}
	if !edited {
		return
	}
	if handler || moved || timed || published {
		l.discard(task.Key)
	}
	e.evaluator.Edited(now, task.Policy)
	l.enqueue(e)
}

func (l *loop) remove(key identity.Key, e *entry) {
	l.dequeue(e)
	l.discard(key)
	delete(l.entries, key)
	delete(l.members[e.task.container()], key)
	if len(l.members[e.task.container()]) == 0 {
		delete(l.members, e.task.container())
	}
	l.options.Sink.ProbeGone(key)
}

func (l *loop) containerChanged(now time.Time, id identity.ContainerKey, c thresholds.ContainerRun) {
	l.containers[id] = c
	delete(l.unknown, id)
	l.resolveAll(now, id)
}

func (l *loop) containerGone(now time.Time, id identity.ContainerKey) {
	delete(l.containers, id)
	delete(l.unknown, id)
	l.resolveAll(now, id)
}

// containerUnknown pauses the probes of a container. Their states do not change.
func (l *loop) containerUnknown(id identity.ContainerKey) {
	l.unknown[id] = true
	for key, e := range l.members[id] {
		l.discard(key)
		l.dequeue(e)
	}
}

func (l *loop) sync(now time.Time) {
	if l.synced {
		return
	}
	l.synced = true
	for _, e := range l.entries {
		l.resolve(now, e)
	}
}

func (l *loop) resolveAll(now time.Time, id identity.ContainerKey) {
	if !l.synced {
		return
	}
	for _, e := range l.members[id] {
		l.resolve(now, e)
	}
}

// runs reports whether the container is of the planned pod. A plan and the annotations of a pod can state the UID
// of another pod, also in a namespace that must not be probed, so the container must have the pod's namespace and
// name, too. Only containers that no kubelet runs have none.
func (t *Task) runs(c thresholds.ContainerRun) bool {
	return c.Pod == t.Pod || t.RuntimeUID == "" && c.Pod == (types.NamespacedName{})
}

// resolve updates an evaluator with the newest run of its container, unless it is unknown.
func (l *loop) resolve(now time.Time, e *entry) {
	key, before := e.task.Key, e.evaluator.Container()
	if l.unknown[e.task.container()] {
		return
	}
	state := e.evaluator.State()
	if before.ID == "" && l.isOfAnother(e, state.ContainerID) {
		e.evaluator.Move(state)
		e.moved = true
	}
	var transition thresholds.Transition
	var changed bool
	if c, found := l.containers[e.task.container()]; found && e.task.runs(c) {
		transition, changed = e.evaluator.ContainerChanged(now, c)
	} else {
		transition, changed = e.evaluator.ContainerGone(now)
	}
	if after := e.evaluator.Container(); after.ID != before.ID || after.Running != before.Running {
		l.discard(key)
		e.close(now, !e.moved)
		e.moved = false
	}
	switch {
	case changed:
		l.announce(e, &transition)
	case e.evaluator.State() != state:
		// The state belongs to another run of the container, which the report must contain.
		l.announce(e, nil)
	}
	l.enqueue(e)
}

// isOfAnother reports whether the ID is that of another container of the pod: the plan has moved the probe since the
// state was reported.
func (l *loop) isOfAnother(e *entry, id string) bool {
	own := e.task.container()
	if id == "" || thresholds.ShortID(l.containers[own].ID) == id {
		return false
	}
	for key, c := range l.containers {
		if key.PodUID == own.PodUID && thresholds.ShortID(c.ID) == id {
			return true
		}
	}
	return false
}

// discard cancels the run in flight, if any, and ignores its result.
func (l *loop) discard(key identity.Key) {
	if f, found := l.inFlight[key]; found {
		f.stale = true
		f.cancel()
	}
}

// start runs a probe once, in its own goroutine.
func (l *loop) start(ctx context.Context, now time.Time, e *entry, limit pace.Limit) {
	ctx, cancel := context.WithCancel(ctx)
	f := &flight{cancel: cancel, began: now, startup: e.startup != nil, slowed: e.leave(now, limit)}
	key, pod := e.task.Key, e.task.Pod
	evaluator, target := e.gate()
	evaluator.Begin(now)
	target.ContainerID = e.evaluator.Container().ID
	target.Owner = probing.Owner{Namespace: pod.Namespace, Pod: string(key.PodUID), Probe: key.String()}
	target.Started = func() { f.started.Store(true) }
	target.Again = f.count(pace.Cost(&target))
	l.inFlight[key] = f
	l.enqueue(e)
	go func() {
		outcome, err := l.options.Prober.Probe(ctx, target)
		cancelled := ctx.Err() != nil
		cancel()
		run := Run{
			Key: key, Pod: pod, Handler: target.Handler, Startup: f.startup, RateLimited: f.slowed,
			Duration: l.options.Now().Sub(now), Outcome: outcome, Err: err,
		}
		l.post(func(now time.Time) { l.landed(now, f, run, cancelled) })
	}()
}

// landed handles a run that has ended.
func (l *loop) landed(now time.Time, f *flight, run Run, cancelled bool) {
	delete(l.inFlight, run.Key)
	e, planned := l.entries[run.Key]
	if planned {
		e.spent(int(f.cost.Load()))
		defer l.enqueue(e)
	}
	if f.stale || !planned || cancelled {
		return
	}
	l.updateProblem(now, e, f, run)
	if run.Startup {
		e.startedUp(now, run)
	}
	if run.Startup || run.Err != nil {
		l.options.Observe(run)
		l.announce(e, nil)
		return
	}
	transition, changed := e.evaluator.Outcome(now, run.Outcome)
	_, run.Streak = e.evaluator.Streak()
	l.options.Observe(run)
	if !changed {
		l.announce(e, nil)
		return
	}
	l.announce(e, &transition)
}

// announce sends the state of a probe to the sink.
func (l *loop) announce(e *entry, transition *thresholds.Transition) {
	l.options.Sink.ProbeChanged(Change{Key: e.task.Key, Pod: e.task.Pod, State: e.evaluator.State(), Transition: transition})
}
