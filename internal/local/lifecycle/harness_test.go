// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
)

// scenario drives a machine and logs the actions that it returns.
type scenario struct {
	t       *testing.T
	pod     *corev1.Pod
	machine *lifecycle.PodMachine
	now     time.Time
	begin   time.Time
	log     []string
	// broken are the containers that can't be started.
	broken map[string]bool
}

func newScenario(t *testing.T, edits ...func(*corev1.Pod)) *scenario {
	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "uid"},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main"}},
		},
	}
	for _, edit := range edits {
		edit(pod)
	}
	begin := time.Unix(1_000_000, 0)
	return &scenario{t: t, pod: pod, machine: lifecycle.New(pod, lifecycle.CrashLoop{}), now: begin, begin: begin, broken: map[string]bool{}}
}

// take takes the actions that the machine returned. A start succeeds immediately. All
// actions are logged.
func (s *scenario) take(actions []lifecycle.Action) {
	for len(actions) > 0 {
		action := actions[0]
		actions = actions[1:]
		s.log = append(s.log, fmt.Sprintf("%s %s", s.now.Sub(s.begin), line(action)))
		if action.Verb != lifecycle.Start {
			continue
		}
		id := fmt.Sprintf("%s-%d", action.Container, s.machine.Container(action.Container).Starts)
		if s.broken[action.Container] {
			actions = append(actions, s.machine.StartFailed(s.now, action.Container, id, errors.New("broken"))...)
			continue
		}
		actions = append(actions, s.machine.ContainerStarted(s.now, action.Container, id)...)
	}
}

func line(a lifecycle.Action) string {
	switch a.Verb {
	case lifecycle.RunHook:
		return fmt.Sprintf("%s %s %s", a.Verb, a.Container, a.Timeout)
	case lifecycle.Record:
		return fmt.Sprintf("%s %s: %s", a.Reason, a.Container, a.Message)
	}
	return fmt.Sprintf("%s %s", a.Verb, a.Container)
}

// step is one event of a scenario.
type step func(s *scenario)

func advance(s *scenario) { s.take(s.machine.Advance(s.now)) }

// pass advances the time, and the machine whenever it is due.
func pass(d time.Duration) step {
	return func(s *scenario) {
		until := s.now.Add(d)
		for {
			due, ok := s.machine.Due()
			if !ok || due.After(until) {
				break
			}
			if due.After(s.now) {
				s.now = due
			}
			before := len(s.log)
			advance(s)
			if next, ok := s.machine.Due(); ok && !next.After(s.now) && len(s.log) == before {
				s.t.Fatalf("due at %s, but no action was returned", s.now.Sub(s.begin))
			}
		}
		s.now = until
	}
}

func exit(name string, code int32) step {
	return func(s *scenario) {
		c := s.machine.Container(name)
		s.take(s.machine.ContainerExited(s.now, name, lifecycle.ContainerExit{ID: c.ID, Code: code, FinishedAt: s.now}))
		advance(s)
	}
}

func failed(name, probe string, own *corev1.Probe) step {
	return func(s *scenario) {
		s.take(s.machine.ProbeFailed(s.now, name, s.machine.Container(name).ID, probe, own))
	}
}

func startup(name string) step {
	return func(s *scenario) { s.take(s.machine.StartupSucceeded(s.now, name, s.machine.Container(name).ID)) }
}

func hook(name string, err error) step {
	return func(s *scenario) {
		c := s.machine.Container(name)
		h := c.Spec.Lifecycle.PostStart
		if c.Phase == lifecycle.Stopping {
			h = c.Spec.Lifecycle.PreStop
		}
		s.take(s.machine.HookEnded(s.now, name, c.ID, h, err))
	}
}

func stop(s *scenario) { s.take(s.machine.Stop(s.now)) }

func never(p *corev1.Pod)     { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
func onFailure(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }

func grace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func inits(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			c := corev1.Container{Name: name}
			if strings.HasPrefix(name, "side") {
				always := corev1.ContainerRestartPolicyAlways
				c.RestartPolicy = &always
				c.StartupProbe = &corev1.Probe{}
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
}

func hooks(l corev1.Lifecycle) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Lifecycle = &l }
}

func execHook() *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"hook"}}}
}
