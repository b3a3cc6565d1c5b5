// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seamark-dev/seamark/internal/local/podstatus"
)

// statuses keeps the statuses of the pods up to date.
type statuses struct {
	pods     *pods
	changes  *changes
	schedule *schedule
}

// refreshAll computes the statuses that may have changed.
func (s *statuses) refreshAll(now time.Time) {
	for _, p := range s.pods.list {
		s.refresh(now, p)
	}
}

// refresh computes the status of a pod if it may have changed.
func (s *statuses) refresh(now time.Time, p *pod) {
	if !p.dirty {
		return
	}
	p.dirty = false
	before := p.object.Status
	p.object.Status = podstatus.Of(now, p.object, p.machine)
	after := &p.object.Status
	s.changes.containers(now, p, before.InitContainerStatuses, after.InitContainerStatuses)
	s.changes.containers(now, p, before.ContainerStatuses, after.ContainerStatuses)
	s.changes.conditions(now, p, before.Conditions)
	if before.Phase != after.Phase {
		s.changes.phase(now, p)
	}
	if before.Phase != after.Phase || !equality.Semantic.DeepEqual(before.Conditions, after.Conditions) {
		s.schedule.planBy(now)
	}
}
