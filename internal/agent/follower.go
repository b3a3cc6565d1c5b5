// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// absenceGrace is how long a plan stays in force after its NodePodProbe is deleted. An object
// that is deleted by mistake is recreated soon, and no state must be lost.
const absenceGrace = 30 * time.Second

// planRunner runs what is planned: a worker.Worker.
type planRunner interface {
	// SetPlan replaces the plan and calls inForce when the new one is in force.
	SetPlan(tasks []worker.Task, inForce func())
}

// planReporter reports the states of the plan in force: a reporter.
type planReporter interface {
	// Restore returns the reported states of an object's planned probes.
	Restore(object *v1alpha1.NodePodProbe) report.States
	// InForce receives the object whose plan is now in force; nil if there is no object.
	InForce(object *v1alpha1.NodePodProbe)
	// Observe receives the object as it is stored on the API server now; nil if there is
	// none.
	Observe(object *v1alpha1.NodePodProbe)
}

// follower puts the plan of the watched object in force.
type follower struct {
	watched *watched
	runner  planRunner
	report  planReporter
	log     logr.Logger
	// planned receives the runs per second of each plan. It may be nil.
	planned func(runsPerSecond float64)

	// listed is closed when the reporter knows the states that an earlier agent reported. No
	// plan is put in force earlier. It is nil afterwards.
	listed <-chan struct{}

	// synced reports whether a plan is in force, and inForce is its generation. probes is
	// the number of probes in the newest plan.
	synced          atomic.Bool
	probes, inForce atomic.Int64

	// started reports whether a plan was passed to the runner. uid and plan belong to the
	// newest one, problems are its probes that can never run, and followed contains the
	// keys of its tasks, including those that can't run.
	started  bool
	uid      types.UID
	plan     report.Plan
	problems []worker.Problem
	followed map[identity.Key]bool
}

// run follows the object until ctx ends.
func (f *follower) run(ctx context.Context) {
	grace := time.NewTimer(time.Hour)
	grace.Stop()
	defer grace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-grace.C:
			f.log.Info("Stopped probing, the node has no NodePodProbe")
			f.put(nil)
			continue
		case <-f.listed:
			f.listed = nil
		case <-f.watched.changed:
			if object, known := f.watched.stored(); known {
				f.report.Observe(object)
			}
		}
		if f.listed != nil {
			continue
		}
		if object, complete := f.watched.plan(); complete {
			f.follow(object, grace)
		}
	}
}

// follow puts the plan of the object in force, if it is not. If there is no object, the
// plan stays in force until the grace period ends.
func (f *follower) follow(object *v1alpha1.NodePodProbe, grace *time.Timer) {
	if object == nil && f.started {
		grace.Reset(absenceGrace)
		return
	}
	grace.Stop()
	// After the database of the API server was restored, another plan can have the same generation.
	if f.started && object.UID == f.uid && object.Generation == f.plan.Generation &&
		equality.Semantic.DeepEqual(object.Spec.PodProbes, f.plan.Pods) {
		return
	}
	f.put(object)
}

// put passes the plan of an object to the runner. A plan that follows no other starts from the
// reported states. For later plans, the runner has newer states.
func (f *follower) put(object *v1alpha1.NodePodProbe) {
	plan, before := planOf(object), f.uid
	f.uid = ""
	var restored report.States
	if object != nil {
		f.uid = object.UID
		if before == "" {
			restored = f.report.Restore(object)
		}
	}
	f.started = true
	tasks, problems := worker.TasksOf(plan.Pods)
	tasks = runnable(tasks, restored, f.followed)
	f.followed = make(map[identity.Key]bool, len(tasks))
	for i := range tasks {
		f.followed[tasks[i].Key] = true
	}
	f.logPlan(plan, len(tasks), problems)
	f.plan, f.problems = plan, problems
	f.probes.Store(int64(len(tasks)))
	if f.planned != nil {
		f.planned(loadOf(tasks))
	}
	f.runner.SetPlan(tasks, func() {
		f.report.InForce(object)
		f.inForce.Store(plan.Generation)
		f.synced.Store(true)
	})
}

// planOf returns the plan of an object; it is empty if there is none.
func planOf(object *v1alpha1.NodePodProbe) report.Plan {
	if object == nil {
		return report.Plan{}
	}
	return report.Plan{Generation: object.Generation, Pods: object.Spec.PodProbes}
}

// runnable returns the tasks to run, with the states to start from. It keeps a task without
// a target if the task has a restored state or was in the previous plan, because its state
// can still change when its container ends.
func runnable(tasks []worker.Task, restored report.States, before map[identity.Key]bool) []worker.Task {
	kept := tasks[:0]
	for _, task := range tasks {
		task.Restored = restored[task.Key]
		if task.Target.Handler != "" || task.Restored.State != "" || before[task.Key] {
			kept = append(kept, task)
		}
	}
	return kept
}

// logPlan logs how the plan differs from the previous one. A problem that stays from plan
// to plan is logged once.
func (f *follower) logPlan(plan report.Plan, tasks int, problems []worker.Problem) {
	log := f.log.V(logging.Decisions)
	before, after := podsOf(f.plan), podsOf(plan)
	for uid, pod := range after {
		if _, known := before[uid]; !known {
			log.Info("Started probing pod", "pod", pod.String(), "podUID", string(uid))
		}
	}
	for uid, pod := range before {
		if _, stays := after[uid]; !stays {
			log.Info("Stopped probing pod", "pod", pod.String(), "podUID", string(uid))
		}
	}
	for _, problem := range problems {
		if !slices.ContainsFunc(f.problems, func(p worker.Problem) bool {
			return p.Pod == problem.Pod && p.Probe == problem.Probe && p.Err.Error() == problem.Err.Error()
		}) {
			f.log.Error(problem.Err, "Planned probe is invalid", "pod", problem.Pod.String(), "probe", problem.Probe)
		}
	}
	log.Info("Plan changed", "generation", plan.Generation, "pods", len(plan.Pods), "probes", tasks)
}

func podsOf(plan report.Plan) map[types.UID]types.NamespacedName {
	names := make(map[types.UID]types.NamespacedName, len(plan.Pods))
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		names[types.UID(pod.UID)] = types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	}
	return names
}

// loadOf returns how many runs per second the tasks have.
func loadOf(tasks []worker.Task) float64 {
	load := 0.0
	for i := range tasks {
		load += 1 / tasks[i].Policy.Period.Seconds()
	}
	return load
}
