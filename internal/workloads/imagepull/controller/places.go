// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
)

// places are the places for pulls: of each node, and in the cluster. They are safe for concurrent use.
type places struct {
	perNode, total int

	mu     sync.Mutex
	claims map[types.NamespacedName]*claim
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
	return &places{perNode: perNode, total: total, claims: map[types.NamespacedName]*claim{}}
}

// take records the nodes of the pulls of a job, and takes places for at most limit of those that can start, in their order.
// It returns those that may start, and the other jobs that may start more because the job has left places.
func (p *places) take(job imagepull.Claim, has []string, starts []imagepull.Start, limit int) (granted []imagepull.Start, others []types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, own := p.claims[job.Job], &claim{Claim: job, nodes: has}
	p.claims[job.Job] = own
	// A namespace leaves a place of each node to others.
	pulls, mine, most, open := map[string]int{}, map[string]int{}, max(1, p.perNode-1), []imagepull.Start{}
	for key, claim := range p.claims {
		for _, node := range claim.nodes {
			pulls[node]++
			if key.Namespace == job.Job.Namespace {
				mine[node]++
			}
		}
	}
	for _, start := range starts {
		if pulls[start.Node] < p.perNode && mine[start.Node] < most {
			open = append(open, start)
		}
	}
	own.blocked = len(open) < min(limit, len(starts))
	own.Active, own.More = len(has), min(limit, len(open))
	granted = open[:min(own.More, p.share()[job.Job])]
	for _, start := range granted {
		own.nodes = append(own.nodes, start.Node)
	}
	own.Active, own.More = len(own.nodes), own.More-len(granted)
	if before != nil && !sets.New(has...).HasAll(before.nodes...) {
		others = p.waiting(job.Job)
	}
	return granted, others
}

// leave removes a job, and returns the jobs that may start more.
func (p *places) leave(job types.NamespacedName) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.claims[job]
	delete(p.claims, job)
	if before == nil || len(before.nodes) == 0 {
		return nil
	}
	return p.waiting(job)
}

func (p *places) share() map[types.NamespacedName]int {
	claims := make([]imagepull.Claim, 0, len(p.claims))
	for _, claim := range p.claims {
		claims = append(claims, claim.Claim)
	}
	return imagepull.Share(p.total, claims)
}

// waiting returns the jobs, except one, that may start more.
func (p *places) waiting(except types.NamespacedName) []types.NamespacedName {
	var jobs []types.NamespacedName
	granted := p.share()
	for key, claim := range p.claims {
		if key != except && (claim.blocked || granted[key] > 0) {
			jobs = append(jobs, key)
		}
	}
	return jobs
}
