// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Progress is what has become of the nodes of a job in the present pass. The status has enough of it that a process that
// starts asks few nodes again. It is not safe for concurrent use.
type Progress struct {
	nodes map[string]*pull
	// unnamed is the number of failed nodes that the status did not name.
	unnamed int32
	// failure is the last failure.
	failure string
}

// pull is what has become of a node.
type pull struct {
	uid types.UID
	// decided is whether the node has succeeded or failed.
	decided, failed bool
	// attempt is the number of the present attempt, and created whether its pod was.
	attempt int32
	created bool
	// failedAt is when the present attempt failed, zero if it has not, and reason is why.
	failedAt time.Time
	reason   string
}

// failureMark is between the numbers and the last failure in the message of a status.
const failureMark = " failed. "

// Restore returns the progress of a job that the status knows: the nodes up to the cursor that are not pulling and did not
// join later have succeeded or failed.
func Restore(job *v1alpha1.ImagePullJob, nodes []*corev1.Node) *Progress {
	p, status := &Progress{nodes: make(map[string]*pull, len(nodes))}, &job.Status
	since := passTime(job)
	pulling, failed, compare := sets.New(status.Pulling...), sets.New(status.FailedNodes...), order(job)
	for _, node := range nodes {
		if compare(node.Name, status.Cursor) <= 0 && !pulling.Has(node.Name) && node.CreationTimestamp.Before(since) {
			p.nodes[node.Name] = &pull{uid: node.UID, decided: true, failed: failed.Has(node.Name)}
		}
	}
	p.unnamed = max(0, status.Failed-int32(len(status.FailedNodes)))
	_, p.failure, _ = strings.Cut(status.Message, failureMark)
	return p
}

// passDone reports whether each node had succeeded or failed when the status was written, and since when it is so, or nil.
func passDone(job *v1alpha1.ImagePullJob) (bool, *metav1.Time) {
	complete := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ImagePullJobComplete)
	if complete == nil {
		return false, nil
	}
	return complete.Status == metav1.ConditionTrue, &complete.LastTransitionTime
}

// passTime returns a time in the pass that the status is about: the later one of when it was due and when the condition
// Complete changed. It is nil if nothing was written yet.
func passTime(job *v1alpha1.ImagePullJob) *metav1.Time {
	_, since := passDone(job)
	if pass := job.Status.PassTime; since == nil || since.Before(pass) {
		return pass
	}
	return since
}

// pullOn returns what has become of a node, to be changed. A node with another UID is another node.
func (p *Progress) pullOn(node *corev1.Node) *pull {
	found := p.nodes[node.Name]
	if found == nil || found.uid != node.UID {
		found = &pull{uid: node.UID}
		p.nodes[node.Name] = found
	}
	return found
}

// Created records that the pod of the present attempt on a node was created. The node is one of a plan.
func (p *Progress) Created(node string) { p.nodes[node].created = true }

// Refused records that the API server has refused the pod of a node of a plan: no other attempt follows.
func (p *Progress) Refused(node string, err error) {
	p.decide(node, "Refused: "+text.Truncate(err.Error(), maxText))
}

// decide records that a node has succeeded, or why it failed.
func (p *Progress) decide(node, failure string) {
	found := p.nodes[node]
	found.decided, found.failed, found.reason = true, failure != "", failure
	if failure != "" {
		p.failure = node + ": " + failure
	}
}

// prune forgets nodes that are gone, when they are many.
func (p *Progress) prune(nodes map[string]*corev1.Node) {
	if len(p.nodes) > 2*len(nodes) {
		maps.DeleteFunc(p.nodes, func(name string, _ *pull) bool { return nodes[name] == nil })
	}
}
