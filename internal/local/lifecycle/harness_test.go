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

	"github.com/seamark-dev/seamark/internal/local/backoff"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
)

// bench drives a machine through a story, and writes down what it asks for.
type bench struct {
	t       *testing.T
	pod     *corev1.Pod
	machine *lifecycle.Pod
	now     time.Time
	begin   time.Time
	log     []string
	// broken are containers that can't be started.
	broken map[string]bool
}

func newBench(t *testing.T, edits ...func(*corev1.Pod)) *bench {
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
	return &bench{t: t, pod: pod, machine: lifecycle.New(pod, backoff.Policy{}), now: begin, begin: begin, broken: map[string]bool{}}
}

// did does what the machine asks for: starts succeed at once, all else is only noted.
func (b *bench) did(actions []lifecycle.Action) {
	for len(actions) > 0 {
		action := actions[0]
		actions = actions[1:]
		b.log = append(b.log, fmt.Sprintf("%s %s", b.now.Sub(b.begin), action))
		if action.Verb != lifecycle.Start {
			continue
		}
		id := fmt.Sprintf("%s-%d", action.Container, b.machine.Container(action.Container).Starts)
		if b.broken[action.Container] {
			actions = append(actions, b.machine.NotBegun(b.now, action.Container, id, errors.New("broken"))...)
			continue
		}
		actions = append(actions, b.machine.Begun(b.now, action.Container, id)...)
	}
}

// step is one thing that happens.
type step func(b *bench)

func advance(b *bench) { b.did(b.machine.Advance(b.now)) }

// pass lets time go by, and what is due be done when it is.
func pass(d time.Duration) step {
	return func(b *bench) {
		until := b.now.Add(d)
		for {
			due, ok := b.machine.Due()
			if !ok || due.After(until) {
				break
			}
			if due.After(b.now) {
				b.now = due
			}
			before := len(b.log)
			advance(b)
			if next, ok := b.machine.Due(); ok && !next.After(b.now) && len(b.log) == before {
				b.t.Fatalf("due at %s, and nothing to do", b.now.Sub(b.begin))
			}
		}
		b.now = until
	}
}

func exit(name string, code int32) step {
	return func(b *bench) {
		c := b.machine.Container(name)
		b.did(b.machine.ContainerEnded(b.now, name, lifecycle.Exit{ID: c.ID, Code: code, FinishedAt: b.now}))
		advance(b)
	}
}

func failed(name, probe string, own *corev1.Probe) step {
	return func(b *bench) {
		b.did(b.machine.ProbeFailed(b.now, name, b.machine.Container(name).ID, probe, own))
	}
}

func startup(name string) step {
	return func(b *bench) { b.did(b.machine.StartupSucceeded(b.now, name, b.machine.Container(name).ID)) }
}

func hook(name string, err error) step {
	return func(b *bench) {
		c := b.machine.Container(name)
		h := c.Spec.Lifecycle.PostStart
		if c.Phase == lifecycle.Stopping {
			h = c.Spec.Lifecycle.PreStop
		}
		b.did(b.machine.HookEnded(b.now, name, c.ID, h, err))
	}
}

func stop(b *bench) { b.did(b.machine.Stop(b.now)) }

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
