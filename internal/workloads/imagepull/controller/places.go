// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
)

// places are the places for pulls: of each node, and in the cluster. They are safe for concurrent use.
type places struct {
	perNode, total int

	mu     sync.Mutex
	claims map[types.NamespacedName]*claim
	// nodes are the numbers of pulls by node.
	nodes map[string]int
}

// claim is what a job has and wants.
type claim struct {
	imagepull.Claim
	// nodes are those of its pulls.
	nodes []string
	// blocked is whether it could start a pull on a node that has no place.
	blocked bool
}

func newPlaces(perNode, total int) *places {
	return &places{perNode: perNode, total: total, claims: map[types.NamespacedName]*claim{}, nodes: map[string]int{}}
}

// take records the nodes of the pulls of a job, and takes places for at most limit of those that can start, in their order.
// It returns those that may start, and the other jobs that may start more because the job has left places.
func (p *places) take(job imagepull.Claim, has []string, starts []imagepull.Start, limit int) (granted []imagepull.Start, others []types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.set(job, has)
	own, open := p.claims[job.Job], []imagepull.Start{}
	for _, start := range starts {
		if p.nodes[start.Node.Name] < p.perNode {
			open = append(open, start)
		}
	}
	own.blocked = len(open) < min(limit, len(starts))
	own.More = min(limit, len(open))
	granted = open[:min(own.More, p.share()[job.Job])]
	for _, start := range granted {
		own.nodes = append(own.nodes, start.Node.Name)
		p.nodes[start.Node.Name]++
	}
	own.Active, own.More = len(own.nodes), own.More-len(granted)
	if left {
		others = p.waiting(job.Job)
	}
	return granted, others
}

// set replaces what a job has. It reports whether it has left a place.
func (p *places) set(job imagepull.Claim, has []string) bool {
	left := p.remove(job.Job, has)
	job.Active = len(has)
	p.claims[job.Job] = &claim{Claim: job, nodes: slices.Clone(has)}
	for _, node := range has {
		p.nodes[node]++
	}
	return left
}

// remove removes what a job has. It reports whether that is more than what remains.
func (p *places) remove(job types.NamespacedName, remains []string) (left bool) {
	before := p.claims[job]
	if before == nil {
		return false
	}
	for _, node := range before.nodes {
		left = left || !slices.Contains(remains, node)
		if p.nodes[node]--; p.nodes[node] <= 0 {
			delete(p.nodes, node)
		}
	}
	delete(p.claims, job)
	return left
}

// leave removes a job, and returns the jobs that may start more.
func (p *places) leave(job types.NamespacedName) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.remove(job, nil) {
		return p.waiting(job)
	}
	return nil
}

func (p *places) share() map[types.NamespacedName]int {
	claims := make([]imagepull.Claim, 0, len(p.claims))
	for _, each := range p.claims {
		claims = append(claims, each.Claim)
	}
	return imagepull.Share(p.total, claims)
}

// waiting returns the jobs, except one, that may start more.
func (p *places) waiting(except types.NamespacedName) []types.NamespacedName {
	var jobs []types.NamespacedName
	granted := p.share()
	for key, each := range p.claims {
		if key != except && (each.blocked || granted[key] > 0) {
			jobs = append(jobs, key)
		}
	}
	return jobs
}
