// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/earliest"
)

// tolerance is how much later than its deadline a run may start: it takes time to start one, also if the deadline
// is 0.
const tolerance = time.Second

// run starts or drops the scheduled times that are due, and finds the next one.
func (p *planner) run() {
	if ptr.Deref(p.Object.Spec.Paused, false) {
		p.stop(ReasonPaused, "spec.paused is true. When it becomes false, the last missed run is made up.")
		return
	}
	base := p.Object.CreationTimestamp.Time
	for _, other := range []*metav1.Time{p.Status.Since, p.Status.LastScheduleTime} {
		if other != nil && other.After(base) {
			base = other.Time
		}
	}
	since := p.Status.Since.Time
	if scheduled, due := p.schedule.Latest(base, p.Now, since); due {
		p.miss(base, scheduled, since)
		p.start(scheduled)
	}
	next, found := p.schedule.Next(p.Now, since)
	if !found {
		p.stop(ReasonNeverRuns, fmt.Sprintf("spec.schedule: %q: no time within five years matches", p.Object.Spec.Schedule))
		return
	}
	p.Status.NextScheduleTime = &metav1.Time{Time: next}
	p.Next = earliest.Time(p.Next, next)
	p.condition(metav1.ConditionTrue, ReasonScheduled, "The next run is at "+next.In(p.schedule.Zone()).Format(time.RFC3339)+", "+p.schedule.Zone().String()+".")
}

// miss drops the scheduled times after the base that are before the last one.
func (p *planner) miss(base, last, since time.Time) {
	missed, dropped := 0, time.Time{}
	for at := base; missed < maxMissed; missed++ {
		next, found := p.schedule.Next(at, since)
		if !found || !next.Before(last) {
			break
		}
		at, dropped = next, next
	}
	if missed == 0 {
		return
	}
	count := fmt.Sprint(missed)
	if missed == maxMissed {
		count = "at least " + count
		dropped, _ = p.schedule.Latest(base, last.Add(-time.Nanosecond), since)
	}
	p.done(dropped)
	p.event(corev1.EventTypeWarning, ReasonMissedRuns, fmt.Sprintf("Runs that did not start: %s, the last of %s. Only the one of %s is made up.", count, text(dropped), text(last)))
}

func (p *planner) event(kind, reason, message string) {
	p.Events = append(p.Events, Event{Type: kind, Reason: reason, Message: message})
}

// start starts the scheduled time, drops it, or waits.
func (p *planner) start(scheduled time.Time) {
	if seconds := p.Object.Spec.StartingDeadlineSeconds; seconds != nil {
		if late := p.Now.Sub(scheduled).Seconds(); late > float64(*seconds)+tolerance.Seconds() {
			p.done(scheduled)
			p.event(corev1.EventTypeWarning, ReasonMissedDeadline, fmt.Sprintf(
				"The run of %s did not start within spec.startingDeadlineSeconds, %d.", text(scheduled), *seconds,
			))
			return
		}
	}
	if len(p.active) > 0 {
		switch p.Object.Spec.ConcurrencyPolicy {
		case v1alpha1.ForbidConcurrent:
			return // The end of the Job is an event.
		case v1alpha1.ReplaceConcurrent:
			p.Replace = p.active
			p.Status.Active = nil
		}
	}
	p.Create, p.last = scheduled, p.Status.LastScheduleTime
	p.done(scheduled)
}

// done records that the scheduled time has been started or dropped.
func (p *planner) done(scheduled time.Time) {
	p.Status.LastScheduleTime = &metav1.Time{Time: scheduled}
}

func text(scheduled time.Time) string { return scheduled.UTC().Format(time.RFC3339) }

// Retry makes the status one before the creation, which has failed.
func (p *Plan) Retry() {
	if !p.Create.IsZero() {
		p.Status.LastScheduleTime = p.last
	}
}

// ScheduledAt returns the value of the annotation v1alpha1.ScheduledAtKey.
func (p *Plan) ScheduledAt() string { return p.Create.Format(time.RFC3339) }
