// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imagepull decides what an ImagePullJob does next: on which nodes it starts pulls, which pods it deletes, when it
// looks again, and what its status is. The kubelet pulls: a pull is a pod whose only container cannot start. It has no
// client and no clock; what it remembers between plans is the Progress.
package imagepull

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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

// Plan is what to do.
type Plan struct {
	// Delete are the pods to delete. They hold their places until they are gone.
	Delete []*corev1.Pod
	// Start are the nodes that can start a pull, in this order, of which at most Limit may.
	Start []Start
	Limit int
	// Remove is whether to delete the job.
	Remove bool
	// Status is the status, and Urgent is whether it must be written at once.
	Status v1alpha1.ImagePullJobStatus
	Urgent bool
	// Next is when to plan again without an event, zero for never.
	Next time.Time
	// Events are to be recorded.
	Events []Event
}

// Start is a pull that can start.
type Start struct {
	Node    *corev1.Node
	Attempt int32
}

// Event is an event about a job.
type Event struct {
	Type, Reason, Message string
}

// planning is a plan in the making.
type planning struct {
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
	p := &planning{Input: in, byName: make(map[string]*corev1.Node, len(in.Nodes)), present: map[string]bool{}}
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

// Ends reports whether the job ends when each node has succeeded or failed.
func Ends(job *v1alpha1.ImagePullJob) bool {
	return job.Spec.CompletionPolicy.Type != v1alpha1.CompleteNever
}

// Parallelism returns how many of the nodes may pull at the same time.
func Parallelism(job *v1alpha1.ImagePullJob, nodes int) int {
	parallelism, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(job.Spec.Parallelism, intstr.FromInt32(1))), nodes, true)
	if err != nil {
		return 0 // The CRD refuses it.
	}
	return max(parallelism, 0)
}

// Wake plans again at the time, or earlier.
func (p *Plan) Wake(at time.Time) {
	if p.Next.IsZero() || at.Before(p.Next) {
		p.Next = at
	}
}

// begin sets the times of the job, and begins another pass if it is due.
func (p *planning) begin() {
	now := metav1.NewTime(p.Now.Truncate(time.Second))
	if p.Status.StartTime == nil {
		p.Status.StartTime, p.Urgent = &now, true
	}
	if p.Status.Since == nil {
		p.Status.Since = &now
	}
	start, policy := p.Status.StartTime.Time, &p.Job.Spec.CompletionPolicy
	if deadline := policy.ActiveDeadlineSeconds; deadline != nil && Ends(p.Job) {
		at := start.Add(seconds(*deadline))
		if p.late = !p.Now.Before(at); !p.late {
			p.Wake(at)
		}
	}
	if Ends(p.Job) || p.Job.Spec.ImagePullPolicy != corev1.PullAlways {
		return
	}
	due := start.Add(p.Now.Sub(start).Truncate(again))
	if p.isSettled() && p.Status.Since.Time.Before(due) {
		*p.Progress = Progress{nodes: map[string]*pull{}}
		p.Status.Since, p.Status.Cursor, p.Status.Pulling, p.Urgent = &now, "", nil, true
	}
	p.Wake(due.Add(again))
}

// seconds returns the duration, which does not overflow.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(math.MaxInt64/time.Second))) * time.Second
}

// observe learns from the pods.
func (p *planning) observe() {
	for _, pod := range p.Pods {
		node := p.byName[pod.Spec.NodeName]
		if node == nil {
			p.Delete = append(p.Delete, pod)
			continue
		}
		p.present[node.Name] = true
		if found := p.Progress.find(node); found != nil && (found.decided || attemptOf(pod) < found.attempt) {
			p.Delete = append(p.Delete, pod)
		} else if pod.DeletionTimestamp == nil && p.learn(pod, node) {
			p.Delete = append(p.Delete, pod)
		}
	}
}

// learn learns from the pod of the present attempt on a node, and reports whether it is to be deleted.
func (p *planning) learn(pod *corev1.Pod, node *corev1.Node) bool {
	found, timeout := p.Progress.of(node), seconds(int64(ptr.Deref(p.policy().TimeoutSeconds, 600)))
	found.attempt, found.created = attemptOf(pod), true
	result, why := outcomeOf(pod, timeout, p.Now)
	ready, _ := condition(node, corev1.NodeReady)
	full, _ := condition(node, corev1.NodeDiskPressure)
	switch {
	case result == pulled:
		p.decide(node, "")
	case result == hopeless:
		p.decide(node, why)
	case full:
		p.decide(node, reasonDiskFull)
	case !ready:
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

func (p *planning) policy() *v1alpha1.ImagePullJobPullPolicy {
	if p.Job.Spec.PullPolicy == nil {
		return &v1alpha1.ImagePullJobPullPolicy{}
	}
	return p.Job.Spec.PullPolicy
}

// fail learns that the present attempt on a node has failed. It reports whether its pod is to be deleted, because the node
// has failed or the next attempt is due. Until then, the kubelet tries again, too.
func (p *planning) fail(node *corev1.Node, found *pull, why string) bool {
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
func (p *planning) decide(node *corev1.Node, failure string) {
	p.Progress.decide(node, failure)
	if failure != "" && len(p.Events) < maxEvents {
		p.Events = append(p.Events, Event{corev1.EventTypeWarning, "PullFailed", fmt.Sprintf("Node %s failed: %s", node.Name, failure)})
	}
}

// choose finds the nodes that can start a pull.
func (p *planning) choose() {
	parallelism := Parallelism(p.Job, len(p.Nodes))
	p.Limit = max(0, parallelism-len(p.Pods))
	for _, node := range p.Nodes {
		found := p.Progress.find(node)
		if found != nil && found.created && !found.decided && !p.present[node.Name] {
			p.fail(node, found, "Deleted: the pod of the pull was deleted")
		}
		switch {
		case found != nil && found.decided:
		case p.late:
			p.decide(node, "DeadlineExceeded: completionPolicy.activeDeadlineSeconds has passed")
		case p.present[node.Name] || found != nil && found.created || parallelism == 0:
		case p.Job.Spec.ImagePullPolicy != corev1.PullAlways && (found == nil || found.attempt == 0) && trim.HasImage(node, p.Job.Spec.Image):
			p.decide(node, "")
		case Usable(node):
			p.Start = append(p.Start, Start{Node: node, Attempt: attempt(found)})
		default:
			p.skip(node, found)
		}
	}
	if p.late {
		p.Start, p.Delete, p.active = nil, p.Pods, 0
	}
}

func attempt(found *pull) int32 {
	if found == nil {
		return 0
	}
	return found.attempt
}

// skip counts a node that cannot pull now. A pull that was followed by DiskPressure is not tried again.
func (p *planning) skip(node *corev1.Node, found *pull) {
	if full, _ := condition(node, corev1.NodeDiskPressure); full && attempt(found) > 0 {
		p.decide(node, reasonDiskFull)
		return
	}
	p.skipped++
}

// end plans for a job that has ended: its pods are deleted, and the job when its time has passed.
func (p *planning) end() {
	p.Delete = p.Pods
	if ttl := p.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil && Ends(p.Job) {
		at := p.Status.CompletionTime.Add(seconds(int64(*ttl)))
		if p.Remove = !p.Now.Before(at); !p.Remove {
			p.Wake(at)
		}
	}
}
