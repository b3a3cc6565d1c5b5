// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Claim is what a job has and wants of the places of the cluster.
type Claim struct {
	Job types.NamespacedName
	// Rollout is whether the job belongs to a rollout, which waits for it. Created is when it was created.
	Rollout bool
	Created time.Time
	// Active is the number of its pulls, and More that of the pulls that it could start.
	Active, More int
}

// left is the part of the places that a namespace leaves to others: one of so many, and at least one.
const left = 10

// Share returns how many pulls each job may start so that there are at most total. Each free place goes to the namespace
// that has the fewest, and in it to the jobs of rollouts first, then to the oldest. No namespace gets all places.
func Share(total int, claims []Claim) map[types.NamespacedName]int {
	type namespace struct {
		name string
		has  int
		jobs []Claim
	}
	spaces, free, most := map[string]*namespace{}, total, max(1, total-max(1, total/left))
	for _, claim := range slices.SortedFunc(slices.Values(claims), first) {
		free -= claim.Active
		space := spaces[claim.Job.Namespace]
		if space == nil {
			space = &namespace{name: claim.Job.Namespace}
			spaces[space.name] = space
		}
		if space.has += claim.Active; claim.More > 0 {
			space.jobs = append(space.jobs, claim)
		}
	}
	granted := map[types.NamespacedName]int{}
	for ; free > 0; free-- {
		var next *namespace
		for _, space := range spaces {
			if len(space.jobs) > 0 && space.has < most &&
				(next == nil || cmp.Or(cmp.Compare(space.has, next.has), strings.Compare(space.name, next.name)) < 0) {
				next = space
			}
		}
		if next == nil {
			break
		}
		next.has++
		granted[next.jobs[0].Job]++
		if next.jobs[0].More--; next.jobs[0].More == 0 {
			next.jobs = next.jobs[1:]
		}
	}
	return granted
}

// first orders jobs of rollouts before others, and older ones before younger.
func first(a, b Claim) int {
	if a.Rollout != b.Rollout {
		if a.Rollout {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Job.Namespace, b.Job.Namespace), strings.Compare(a.Job.Name, b.Job.Name))
}
