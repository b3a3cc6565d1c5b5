// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local/environ"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/streak"
)

// baseEnvironment returns what containers get of the environment of this program: what
// programs need to run on the machine at all. Everything else would tie a pod to it.
func baseEnvironment() map[string]string {
	base := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"} {
		if value, set := os.LookupEnv(name); set {
			base[name] = value
		}
	}
	return base
}

// act does what a pod's machine asks for, and what that in turn makes it ask for.
func (l *loop) act(now time.Time, p *pod, actions []lifecycle.Action) {
	p.dirty = true
	sooner(&l.replanAt, now)
	for len(actions) > 0 {
		action := actions[0]
		actions = actions[1:]
		switch action.Verb {
		case lifecycle.Start:
			actions = append(actions, l.start(now, p, action.Container)...)
		case lifecycle.RunHook:
			l.hooks <- hookRun{p, action}
		case lifecycle.Terminate:
			if running := p.running[action.Container]; running != nil {
				running.Terminate()
			}
		case lifecycle.Kill:
			if running := p.running[action.Container]; running != nil {
				running.Kill()
			}
		case lifecycle.Record:
			eventType := corev1.EventTypeNormal
			if action.Warning {
				eventType = corev1.EventTypeWarning
			}
			l.tell(p.event(now, action.Container, eventType, action.Reason, action.Message))
		}
	}
}

// start starts a container.
func (l *loop) start(now time.Time, p *pod, name string) []lifecycle.Action {
	c := p.machine.Container(name)
	id := fmt.Sprintf("%s-%s-%d", p.object.UID, name, c.Starts)
	running, err := l.startProcess(p, c, id)
	container := probeid.Container{PodUID: p.object.UID, Name: name}
	p.restartProbes(c)
	if err != nil {
		actions := p.machine.StartFailed(now, name, id, err)
		if c.Exit != nil {
			l.worker.ContainerChanged(container, streak.Container{ID: id, Reason: reasonOf(c.Exit)})
		}
		// The machine goes on after the status has shown it, as after any other end.
		l.mail.post(func(*loop, time.Time) { p.dirty = true })
		return actions
	}
	p.running[name] = running
	go func() {
		<-running.Done()
		l.mail.post(func(l *loop, now time.Time) { l.ended(now, p, name, id, running.Exit()) })
	}()
	l.worker.ContainerChanged(container, streak.Container{ID: id, Running: true, StartedAt: now})
	return p.machine.ContainerStarted(now, name, id)
}

// startProcess starts a container's process in what it is to find: its environment, and a
// folder for temporary files that is as empty as a new container's file system.
func (l *loop) startProcess(p *pod, c *lifecycle.Container, id string) (*process.Process, error) {
	if l.killed {
		return nil, errors.New("the run has been ended")
	}
	temp := filepath.Join(p.folder, "tmp", c.Spec.Name)
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return nil, fmt.Errorf("make a folder for temporary files: %w", err)
	}
	environment, err := environ.For(c.Spec, environ.Sources{
		Pod: p.object, ConfigMaps: l.options.Objects.ConfigMaps, Secrets: l.options.Objects.Secrets,
		Base: l.base, Volumes: p.volumes, TempDir: temp,
	})
	if err != nil {
		return nil, fmt.Errorf("work out the environment: %w", err)
	}
	spec := process.Spec{
		Command: environment.Command, Env: environment.List(), Dir: c.Spec.WorkingDir, Set: id, Leads: true,
		Stdout: l.newLines(p, c.Spec.Name, "stdout"), Stderr: l.newLines(p, c.Spec.Name, "stderr"),
	}
	running, err := l.keeper.Start(spec)
	if err != nil {
		return nil, err
	}
	l.execs.put(id, spec, running)
	return running, nil
}

// ended takes in that a container's processes have ended.
func (l *loop) ended(now time.Time, p *pod, name, id string, exit process.Exit) {
	delete(p.running, name)
	l.execs.remove(id)
	over := lifecycle.ContainerExit{ID: id, Code: exit.Code, Signal: exit.Signal, FinishedAt: exit.At}
	l.worker.ContainerChanged(probeid.Container{PodUID: p.object.UID, Name: name},
		streak.Container{ID: id, Reason: reasonOf(&over)})
	l.act(now, p, p.machine.ContainerExited(now, name, over))
}

// reasonOf says why a container does not run, in the agent's words.
func reasonOf(exit *lifecycle.ContainerExit) string {
	reason := fmt.Sprintf("exited with code %d", exit.Code)
	if exit.Message != "" {
		reason += " (" + exit.Reason + ": " + exit.Message + ")"
	}
	return reason
}

// hookRun is a hook that a container's machine asks for.
type hookRun struct {
	pod    *pod
	action lifecycle.Action
}

// serveHooks runs the hooks that the loop asks for, each in a goroutine of its own, until
// ctx ends and they with it.
func (l *loop) serveHooks(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-l.hooks:
			running.Go(func() { l.runHook(ctx, h) })
		}
	}
}

// runHook runs a hook and posts how it ended.
func (l *loop) runHook(ctx context.Context, h hookRun) {
	if h.action.Timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, h.action.Timeout)
		defer cancel()
		ctx = bounded
	}
	err := l.hook(ctx, h.action)
	l.mail.post(func(l *loop, now time.Time) {
		l.act(now, h.pod, h.pod.machine.HookEnded(now, h.action.Container, h.action.ID, h.action.Hook, err))
	})
}

// hook runs a hook until it ends, its container does, or ctx does.
func (l *loop) hook(ctx context.Context, action lifecycle.Action) error {
	if action.Hook.Sleep != nil {
		timer := time.NewTimer(time.Duration(action.Hook.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("sleep: %w", context.Cause(ctx))
		}
	}
	_, _, code, err := l.execs.run(ctx, action.ID, action.Hook.Exec.Command)
	if err == nil && code != 0 {
		err = fmt.Errorf("exited with code %d", code)
	}
	return err
}
