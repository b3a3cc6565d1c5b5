// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// Startup is the startup probe of a container.
type Startup struct {
	// Policy is how it is timed and evaluated.
	Policy thresholds.Policy
	// Handler is what Target was parsed from.
	Handler corev1.ProbeHandler
	// Target is what to run. It is empty while the pod has no address.
	Target probing.Target
	// Limit is the time after the start of the container after which the startup probe has succeeded
	// if the container still runs: the kubelet would have ended it otherwise.
	Limit time.Duration
}

// newStartup returns the startup probe of a plan, which is nil if it has none.
func newStartup(spec *corev1.Probe, podIP string) (*Startup, error) {
	if spec == nil {
		return nil, nil //nolint:nilnil // No startup probe is not an error.
	}
	s := &Startup{Policy: thresholds.PolicyOf(spec), Handler: spec.ProbeHandler}
	s.Limit = s.Policy.InitialDelay + time.Duration(s.Policy.FailureThreshold+1)*(s.Policy.Period+time.Duration(spec.TimeoutSeconds)*time.Second) +
		time.Duration(ptr.Deref(spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds))*time.Second
	if podIP == "" && spec.Exec == nil {
		return s, nil
	}
	var err error
	s.Target, err = probing.Parse(spec, podIP)
	return s, err
}

func (s *Startup) equal(other *Startup) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.Policy == other.Policy && s.Limit == other.Limit && s.Target.Timeout == other.Target.Timeout &&
		equality.Semantic.DeepEqual(s.Handler, other.Handler)
}

// close makes the probe wait for the startup probe of the running container. started is whether a
// result of the same run, which the probe has after a restart of the agent, means that it has succeeded.
func (e *entry) close(now time.Time, started bool) {
	e.startup = nil
	c := e.evaluator.Container()
	e.sighting.see(now, c)
	if e.task.Startup == nil || !c.Running {
		return
	}
	state := e.evaluator.State()
	resulted := state.State == v1alpha1.ProbeSucceeded || state.State == v1alpha1.ProbeFailed
	if started && resulted && state.ContainerID == thresholds.ShortID(c.ID) {
		return
	}
	e.startup = thresholds.New(e.task.Startup.Policy, thresholds.Phase{})
	e.startup.ContainerChanged(now, c)
}

// gate returns the evaluator and the target of what runs next: the startup probe of the container, or
// the probe.
func (e *entry) gate() (*thresholds.Evaluator, probing.Target) {
	if e.startup != nil {
		return e.startup, e.task.Startup.Target
	}
	return e.evaluator, e.task.Target
}

// period returns the period of what gate returns.
func (e *entry) period() time.Duration {
	if e.startup != nil {
		return e.task.Startup.Policy.Period
	}
	return e.task.Policy.Period
}

// startedUp handles a run of the startup probe of the container. The probe no longer waits if the run
// has succeeded, or if the container runs for longer than its startup may take.
func (e *entry) startedUp(now time.Time, run Run) {
	if e.sighting.runsFor(now, e.task.Startup.Limit) || run.Err == nil && run.Outcome.Success {
		e.startup = nil
		e.evaluator.Edited(now, e.task.Policy)
	}
}

// sighting is when a run of the container was seen first. The time since then is that of the monotonic clock: the clock of
// the node may be set while the container starts.
type sighting struct {
	container string
	at        time.Time
	// age is how long the container had run then, by the clock of the node. It is negative if that is not known.
	age time.Duration
}

// see notes the run, unless it was seen before.
func (s *sighting) see(now time.Time, c thresholds.ContainerRun) {
	if !c.Running || s.container == c.ID {
		return
	}
	*s = sighting{container: c.ID, at: now, age: -1}
	if !c.StartedAt.IsZero() {
		s.age = max(0, now.Sub(c.StartedAt))
	}
}

// runsFor reports whether the container is known to have run for so long.
func (s *sighting) runsFor(now time.Time, limit time.Duration) bool {
	return s.age >= 0 && s.age+now.Sub(s.at) >= limit
}
