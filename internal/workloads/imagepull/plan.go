// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imagepull decides what an ImagePullJob does next: on which nodes it starts pulls, which pods it deletes, when it
// looks again, and what its status is. The kubelet pulls: a pull is a pod whose only container cannot start. It has no
// client and no clock; what it keeps between plans is the Progress.
package imagepull

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

const (
	// again is the period in which a job that does not end pulls again.
	again = 24 * time.Hour
	// firstRetry is the time between the first attempt and the second, which doubles up to longestRetry.
	firstRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
	// maxDoublings keeps the time from overflowing.
	maxDoublings = 6
	// maxEvents is the maximum number of events about nodes of a plan.
	maxEvents = 10
)

// Input is what a plan depends on.
type Input struct {
	// Job is the ImagePullJob. Its status is not older than what was written last.
	Job *v1alpha1.ImagePullJob
	// Nodes are its nodes, as Nodes returns them.
	Nodes []*corev1.Node
	// Pods are those that the job controls, all that were created.
	Pods []*corev1.Pod
	// Progress is that of the job. The plan adds what it learns.
	Progress *Progress
	// Now is the time.
	Now time.Time
}

// Plan is what to do. Pods that are deleted hold their places until they are gone.
type Plan struct {
	planning.JobPlan[v1alpha1.ImagePullJobStatus]
	// Start are the nodes that can start a pull, in this order, of which at most Limit may.
	Start []Start
	Limit int
}

// Start is a pull that can start.
type Start struct {
	Node    string
	Attempt int32
}

// planner is a plan in the making.
type planner struct {
	Input
	Plan
	byName map[string]*corev1.Node
	// present are the nodes with a pod.
	present map[string]bool
	// active is the number of pulls that go on, and skipped that of the nodes that cannot pull now.
	active, skipped int
	// late is whether the deadline has passed.
	late bool
}

// New returns the plan.
func New(in Input) Plan {
	p := &planner{Input: in, byName: make(map[string]*corev1.Node, len(in.Nodes)), present: map[string]bool{}}
	p.Status = *in.Job.Status.DeepCopy()
	p.Status.ObservedGeneration = in.Job.Generation
	p.Pods = slices.SortedFunc(slices.Values(in.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if p.Status.CompletionTime != nil {
		p.end()
		return p.Plan
	}
	for _, node := range in.Nodes {
		p.byName[node.Name] = node
	}
	p.begin()
	p.observe()
	p.choose()
	p.conclude()
	return p.Plan
}

// ends reports whether the job ends when each node has succeeded or failed.
func ends(job *v1alpha1.ImagePullJob) bool {
	return job.Spec.CompletionPolicy.Type != v1alpha1.CompleteNever
}

// parallelism returns how many of the nodes may pull at the same time.
func (p *planner) parallelism() int {
	return planning.Parallelism(ptr.Deref(p.Job.Spec.Parallelism, intstr.FromInt32(1)), len(p.Nodes))
}

// begin sets the times of the job, and begins another pass if it is due.
func (p *planner) begin() {
	now := metav1.NewTime(p.Now.Truncate(time.Second))
	if p.Status.StartTime == nil {
		p.Status.StartTime, p.Urgent = &now, true
	}
	start := p.Status.StartTime.Time
	if deadline := p.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds; deadline != nil && ends(p.Job) {
		p.late = p.Reached(p.Now, start, *deadline)
	}
	if ends(p.Job) || p.Job.Spec.ImagePullPolicy != corev1.PullAlways {
		return
	}
	due := metav1.NewTime(start.Add(p.Now.Sub(start).Truncate(again)))
	if present := passTime(p.Job); present.Before(&due) && p.passed() {
		*p.Progress = Progress{nodes: map[string]*pull{}}
		p.Status.PassTime, p.Urgent = &due, true
	}
	p.Wake(due.Add(again))
}

// passed reports whether the present pass has nothing to do on nodes that can pull. The others wait, and are asked in the
// pass in which they return: a node that is not ready for days must not keep the others from the next pass. A pass that
// takes longer than its period ends before the next begins: otherwise, the last nodes would never be asked.
func (p *planner) passed() bool {
	return !slices.ContainsFunc(p.Nodes, func(node *corev1.Node) bool {
		found := p.Progress.pullOn(node)
		return !found.decided && (found.created || Usable(node))
	})
}

// observe learns from the pods.
func (p *planner) observe() {
	for _, pod := range p.Pods {
		node := p.byName[pod.Spec.NodeName]
		if node == nil {
			p.delete(pod)
			continue
		}
		p.present[node.Name] = true
		if found := p.Progress.pullOn(node); found.decided || attemptOf(pod) < found.attempt {
			p.delete(pod)
		} else if pod.DeletionTimestamp == nil && p.learn(pod, node) {
			p.delete(pod)
		}
	}
}

// delete deletes pods, whatever their kubelets report meanwhile.
func (p *planner) delete(pods ...*corev1.Pod) {
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
			p.Deletes = append(p.Deletes, planning.PodDelete{Pod: gone, Reason: "PullEnded"})
		}
	}
}

// learn learns from the pod of the present attempt on a node, and reports whether it is to be deleted.
func (p *planner) learn(pod *corev1.Pod, node *corev1.Node) bool {
	found, timeout := p.Progress.pullOn(node), time.Duration(ptr.Deref(p.policy().TimeoutSeconds, 600))*time.Second
	found.attempt, found.created = attemptOf(pod), true
	result, why := outcomeOf(pod, timeout, p.Now)
	switch {
	case result == pulled:
		p.decide(node, "")
	case result == hopeless:
		p.decide(node, why)
	case planning.NodeHas(node, corev1.NodeDiskPressure):
		p.decide(node, reasonDiskFull)
	case !planning.NodeHas(node, corev1.NodeReady):
		// The kubelet asks for the same attempt when it returns.
		found.created, found.failedAt = false, time.Time{}
		return true
	case result == failed || !found.failedAt.IsZero():
		return p.fail(node, found, why)
	default:
		p.active++
		p.Wake(pod.CreationTimestamp.Add(timeout))
	}
	return found.decided
}

// reasonDiskFull is why no other attempt follows.
const reasonDiskFull = "NodeDiskFull: the node has DiskPressure since the pull began"

func (p *planner) policy() *v1alpha1.ImagePullJobPullPolicy {
	if p.Job.Spec.PullPolicy == nil {
		return &v1alpha1.ImagePullJobPullPolicy{}
	}
	return p.Job.Spec.PullPolicy
}

// fail learns that the present attempt on a node has failed. It reports whether its pod is to be deleted, because the node
// has failed or the next attempt is due. Until then, the kubelet tries again, too.
func (p *planner) fail(node *corev1.Node, found *pull, why string) bool {
	if found.failedAt.IsZero() {
		found.failedAt, found.reason = p.Now, why
	}
	if found.attempt >= ptr.Deref(p.policy().BackoffLimit, 3) {
		p.decide(node, found.reason)
		return true
	}
	due := found.failedAt.Add(min(firstRetry<<min(found.attempt, maxDoublings), longestRetry))
	if p.Now.Before(due) {
		p.active++
		p.Wake(due)
		return false
	}
	found.attempt, found.created, found.failedAt = found.attempt+1, false, time.Time{}
	return true
}

// decide records that a node has succeeded, or why it failed.
func (p *planner) decide(node *corev1.Node, failure string) {
	p.Progress.decide(node.Name, failure)
	if failure != "" && len(p.Events) < maxEvents {
		p.Events = append(p.Events, planning.Event{
			Type: corev1.EventTypeWarning, Reason: "PullFailed", Sentence: fmt.Sprintf("Node %s failed: %s", node.Name, failure),
		})
	}
}

// choose finds the nodes that can start a pull.
func (p *planner) choose() {
	parallelism := p.parallelism()
	p.Limit = max(0, parallelism-len(p.Pods))
	for _, node := range p.Nodes {
		found := p.Progress.pullOn(node)
		if found.created && !found.decided && !p.present[node.Name] {
			p.fail(node, found, "Deleted: the pod of the pull was deleted")
		}
		switch {
		case found.decided:
		case p.late:
			p.decide(node, "DeadlineExceeded: completionPolicy.activeDeadlineSeconds has passed")
		case p.present[node.Name] || found.created || parallelism == 0:
		case p.Job.Spec.ImagePullPolicy != corev1.PullAlways && found.attempt == 0 && trim.HasImage(node, p.Job.Spec.Image):
			p.decide(node, "")
		case Usable(node):
			p.Start = append(p.Start, Start{Node: node.Name, Attempt: found.attempt})
		case planning.NodeHas(node, corev1.NodeDiskPressure) && found.attempt > 0:
			p.decide(node, reasonDiskFull)
		default:
			p.skipped++
		}
	}
	if p.late {
		p.Start, p.Deletes, p.active = nil, nil, 0
		p.delete(p.Pods...)
	}
}

// end plans for a job that has ended: its pods are deleted, and the job when its time has passed.
func (p *planner) end() {
	p.delete(p.Pods...)
	if ttl := p.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil && ends(p.Job) {
		p.Remove = p.Reached(p.Now, p.Status.CompletionTime.Time, int64(*ttl))
	}
}
