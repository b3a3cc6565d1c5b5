// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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

// Restore returns the progress of a job that the status knows.
func Restore(job *v1alpha1.ImagePullJob, nodes []*corev1.Node) *Progress {
	p, status := &Progress{nodes: map[string]*pull{}}, &job.Status
	if status.Cursor == "" || status.Since == nil {
		return p
	}
	pulling, failed := sets.New(status.Pulling...), sets.New(status.FailedNodes...)
	for _, node := range nodes {
		if node.Name > status.Cursor || pulling.Has(node.Name) || !node.CreationTimestamp.Before(status.Since) {
			continue
		}
		if failed.Has(node.Name) || isOld(node, status.Since.Time) {
			p.nodes[node.Name] = &pull{uid: node.UID, decided: true, failed: failed.Has(node.Name)}
		}
	}
	p.unnamed = max(0, status.Failed-int32(len(status.FailedNodes)))
	_, p.failure, _ = strings.Cut(status.Message, failureMark)
	return p
}

// find returns what has become of a node, or nil if nothing has. A node with another UID is another node.
func (p *Progress) find(node *corev1.Node) *pull {
	if found := p.nodes[node.Name]; found != nil && found.uid == node.UID {
		return found
	}
	return nil
}

// of returns what has become of a node, to be changed.
func (p *Progress) of(node *corev1.Node) *pull {
	found := p.find(node)
	if found == nil {
		found = &pull{uid: node.UID}
		p.nodes[node.Name] = found
	}
	return found
}

// Created records that the pod of the present attempt on a node was created, or that it may have been.
func (p *Progress) Created(node *corev1.Node) { p.of(node).created = true }

// Missing records that there is no pod of the present attempt on a node.
func (p *Progress) Missing(node *corev1.Node) { p.of(node).created = false }

// Refused records that the API server has refused the pod of a node: no other attempt follows.
func (p *Progress) Refused(node *corev1.Node, why string) { p.decide(node, why) }

// decide records that a node has succeeded, or why it failed.
func (p *Progress) decide(node *corev1.Node, failure string) {
	found := p.of(node)
	found.decided, found.failed, found.reason = true, failure != "", failure
	if failure != "" {
		p.failure = node.Name + ": " + failure
	}
}

// prune forgets nodes that are gone, when they are many.
func (p *Progress) prune(nodes []*corev1.Node) {
	if len(p.nodes) <= 2*len(nodes) {
		return
	}
	kept := make(map[string]*pull, len(nodes))
	for _, node := range nodes {
		if found := p.find(node); found != nil {
			kept[node.Name] = found
		}
	}
	p.nodes = kept
}
