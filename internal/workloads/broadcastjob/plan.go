// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package broadcastjob decides what a BroadcastJob does next: on which nodes it creates a pod, which pods it deletes or
// stops, when it looks again, and what its status is. Its pods are what it knows about its nodes: a node whose pod has
// ended gets no other one while that pod exists. It is pure.
package broadcastjob

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// Input is what a plan depends on.
type Input struct {
	// Job is the BroadcastJob. Its status is not older than what was written last.
	Job *v1alpha1.BroadcastJob
	// Nodes are all nodes.
	Nodes []*corev1.Node
	// Pods are those that the job controls, all that were created.
	Pods []*corev1.Pod
	// Left is how many pods of the present step were not created although the plan before wanted it.
	Left int
	// Taken are the names of pods that belong to others. Their nodes get a pod last.
	Taken map[string]bool
	// Guards are those of the namespace of the job.
	Guards guard.Guards
	// Now is the time.
	Now time.Time
}

// Plan is what to do: stop and delete pods, create others, then write the status.
type Plan = planning.JobPlan[v1alpha1.BroadcastJobStatus]

// stopped is the deadline of a pod that is to end: the kubelet ends it, and its logs and its status remain.
const stopped = 1

// planner is a plan in the making.
type planner struct {
	Input
	Plan
	// pods are those of each node.
	pods map[string]*corev1.Pod
	// pending are the nodes that get a pod, in this order.
	pending []*corev1.Node
	// running are the pods that have not ended, which include those that are being deleted.
	running []*corev1.Pod
	// failed and unscheduled are the names of the nodes whose pod failed, and whose pod waits for the scheduler.
	failed, unscheduled []string
	// going is the number of nodes whose pod is being deleted.
	going int
	// absent are the names of the nodes without which the job goes on, and stranded is the number of their pods that are
	// being deleted.
	absent   []string
	stranded int
	// guarded are the pods that guards protect from their end.
	guarded guard.Held
}

// New returns the plan.
func New(in Input) Plan {
	p := &planner{Input: in, pods: make(map[string]*corev1.Pod, len(in.Pods)), guarded: guard.Held{}}
	p.Status = *in.Job.Status.DeepCopy()
	p.Status.ObservedGeneration = in.Job.Generation
	p.plan()
	planning.PutGuarded(&p.Status.Conditions, p.guarded, in.Job.Generation, in.Now)
	return p.Plan
}

func (p *planner) plan() {
	p.observe()
	if Ended(p.Job) {
		p.end()
		return
	}
	if p.Status.StartTime == nil {
		now := metav1.NewTime(p.Now.Truncate(time.Second))
		p.Status.StartTime, p.Urgent = &now, true
	}
	p.Status.Phase = cmp.Or(p.Status.Phase, v1alpha1.BroadcastJobRunning)
	fit, err := nodefit.Compile(&p.Job.Spec.Template.Spec)
	if err != nil {
		p.condition(v1alpha1.BroadcastJobPodsCreated, metav1.ConditionFalse, ReasonInvalidTemplate, err.Error())
		return
	}
	p.place(fit)
	p.decide()
}

// Ended reports whether the job has completed or failed. It stays so, whatever happens.
func Ended(job *v1alpha1.BroadcastJob) bool { return job.Status.CompletionTime != nil }

// Parallelism returns how many of the nodes may run a pod at the same time.
func Parallelism(job *v1alpha1.BroadcastJob, nodes int) int {
	if job.Spec.Parallelism == nil {
		return math.MaxInt32
	}
	return planning.Parallelism(*job.Spec.Parallelism, nodes)
}

// observe finds the pod of each node, and stops those that have restarted too often.
func (p *planner) observe() {
	p.Pods = slices.SortedFunc(slices.Values(p.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range p.Pods {
		node := nodefit.Target(pod)
		if other := p.pods[node]; other == nil || p.outcome(other) > p.outcome(pod) {
			p.pods[node] = pod
		}
		if planning.Finished(pod) {
			continue
		}
		p.running = append(p.running, pod)
		if p.outcome(pod) == failed && (pod.Spec.ActiveDeadlineSeconds == nil || *pod.Spec.ActiveDeadlineSeconds > stopped) && !p.isGuarded(pod) {
			p.Patches = append(p.Patches, planning.PodPatch{Pod: pod, Reason: "RestartLimit", Stop: true})
		}
	}
}

// outcome is how far a pod is. If several pods have the same node, the lowest one counts.
type outcome int

const (
	succeeded outcome = iota
	failed
	active
	// deleted is the outcome of a pod that is being deleted before it succeeded: its node gets another one.
	deleted
)

func (p *planner) outcome(pod *corev1.Pod) outcome {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return succeeded
	case pod.DeletionTimestamp != nil:
		return deleted
	case pod.Status.Phase == corev1.PodFailed,
		pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && trim.Restarts(pod) > p.Job.Spec.FailurePolicy.RestartLimit:
		return failed
	default:
		return active
	}
}

// place counts the nodes, finds those that get a pod, and deletes the pods of nodes that do not fit.
func (p *planner) place(fit *nodefit.Template) {
	p.Status.Desired, p.Status.Active, p.Status.Succeeded, p.Status.Failed = 0, 0, 0, 0
	placed := make(map[string]bool, len(p.pods))
	for _, node := range p.ordered() {
		pod, fits := p.pods[node.Name], fit.Node(node)
		if pod == nil && (fits != nodefit.Yes || node.DeletionTimestamp != nil) {
			continue
		}
		if (pod == nil || p.outcome(pod) >= active && waits(pod)) && p.lost(fit, node) {
			placed[node.Name] = fits != nodefit.No
			p.leave(node, pod, fits)
			continue
		}
		if pod == nil {
			p.Status.Desired++
			p.pending = append(p.pending, node)
			continue
		}
		switch p.outcome(pod) {
		case succeeded:
			p.Status.Succeeded++
		case failed:
			p.Status.Failed++
			p.failed = append(p.failed, node.Name)
		case active:
			if fits == nodefit.No {
				continue
			}
			p.Status.Active++
			if pod.Spec.NodeName == "" {
				p.unscheduled = append(p.unscheduled, node.Name)
			}
		case deleted:
			if fits == nodefit.No {
				continue
			}
			p.going++
		}
		placed[node.Name] = true
		p.Status.Desired++
	}
	for _, pod := range p.running {
		if !placed[nodefit.Target(pod)] {
			p.delete(pod, "Misplaced")
		}
	}
}

// ordered returns the nodes in the order in which they get pods: those that are ready first, because the pods of others
// wait, and hold their places.
func (p *planner) ordered() []*corev1.Node {
	last := func(node *corev1.Node) int {
		switch {
		case len(p.Taken) > 0 && p.Taken[Name(p.Job.Name, node.Name)]:
			return 2
		case !planning.NodeHas(node, corev1.NodeReady):
			return 1
		default:
			return 0
		}
	}
	return slices.SortedFunc(slices.Values(p.Nodes), func(a, b *corev1.Node) int {
		return cmp.Or(last(a)-last(b), strings.Compare(a.Name, b.Name))
	})
}

func (p *planner) delete(pod *corev1.Pod, reason string) {
	if pod.DeletionTimestamp == nil && !p.isGuarded(pod) {
		p.Deletes = append(p.Deletes, planning.PodDelete{Pod: pod, Reason: reason})
	}
}

// isGuarded reports whether a guard protects the pod from its end.
func (p *planner) isGuarded(pod *corev1.Pod) bool {
	name := p.Guards.Deletion(pod)
	p.guarded.Add(name, pod.Name)
	return name != ""
}

// create creates the pods of the next nodes.
func (p *planner) create() {
	parallelism := Parallelism(p.Job, int(p.Status.Desired))
	running := len(p.running) - p.stranded
	limit := min(parallelism-running, planning.MostCreates)
	if p.Job.Spec.FailurePolicy.Type != v1alpha1.BroadcastJobContinue && parallelism < int(p.Status.Desired) && running > 0 {
		limit = min(limit, p.Left)
	}
	for _, node := range p.pending[:min(len(p.pending), max(limit, 0))] {
		p.Creates = append(p.Creates, Pod(p.Job, node.Name))
	}
	if len(p.Creates) == planning.MostCreates {
		p.Wake(p.Now)
	}
}

// end plans for a job that has ended: the pods of one that has failed are deleted, and the job when its time has passed. A
// job has completed without the nodes that were not ready: their pods must not start when the nodes return.
func (p *planner) end() {
	p.clear(func(pod *corev1.Pod) bool { return p.Status.Phase == v1alpha1.BroadcastJobHasFailed || waits(pod) })
	if ttl := p.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil {
		// The garbage collector deletes the pods of a job that is removed.
		p.Remove = p.Reached(p.Now, p.Status.CompletionTime.Time, int64(*ttl)) && len(p.guarded) == 0
	}
}

// clear deletes the pods that have not ended, if they should. Those that failed remain, for their logs.
func (p *planner) clear(should func(*corev1.Pod) bool) {
	for _, pod := range p.running {
		if p.outcome(pod) == active && should(pod) {
			p.delete(pod, "JobFailed")
		}
	}
}
