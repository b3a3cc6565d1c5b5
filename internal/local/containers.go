// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/manifest/environ"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// reasonPortInUse is the reason of the event for a container that failed while another
// process had a port of its pod. It has no counterpart in a cluster.
const reasonPortInUse = "PortInUse"

// baseEnvironment returns the variables of this program's environment that containers get.
// They are the ones that programs need on any machine. The others would make a pod depend
// on this machine.
func baseEnvironment() map[string]string {
	base := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"} {
		if value, set := os.LookupEnv(name); set {
			base[name] = value
		}
	}
	return base
}

// act takes the actions of a pod's machine on the processes of its containers, and those that
// follow from them. The machine is told what happens to the processes.
func (l *loop) act(now time.Time, p *pod, actions []lifecycle.Action) {
	p.dirty = true
	l.plan.schedule(now)
	for len(actions) > 0 {
		action := actions[0]
		actions = actions[1:]
		switch action.Verb {
		case lifecycle.Start:
			actions = append(actions, l.startContainer(now, p, action.Container)...)
		case lifecycle.RunHook:
			l.background(func(ctx context.Context) { l.runHook(ctx, p, action) })
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
			l.addEvent(now, p, action.Container, eventType, action.Reason, action.Message)
		}
	}
}

func (l *loop) startContainer(now time.Time, p *pod, name string) []lifecycle.Action {
	machine := p.machine.Container(name)
	delete(p.lastErrors, name)
	id := fmt.Sprintf("%s-%s-%d", p.object.UID, name, machine.Starts)
	running, err := l.startProcess(p, machine.Spec, id)
	container := identity.ContainerKey{PodUID: p.object.UID, Name: name}
	p.containerStarted(machine)
	if err != nil {
		l.failed(now, p, name, err.Error(), machine.Spec.WorkingDir)
		actions := p.machine.StartFailed(now, name, id, err)
		if machine.Exit != nil {
			l.worker.ContainerChanged(container, thresholds.ContainerRun{ID: id, Reason: reasonOf(machine.Exit)})
		}
		// As after any other exit, the status shows it before the machine advances.
		l.inbox.Post(func(time.Time) { p.dirty = true })
		return actions
	}
	p.running[name] = running
	go func() {
		<-running.Done()
		l.inbox.Post(func(now time.Time) { l.exited(now, p, name, id, running.Exit()) })
	}()
	l.worker.ContainerChanged(container, thresholds.ContainerRun{ID: id, Running: true, StartedAt: now})
	return p.machine.ContainerStarted(now, name, id)
}

// programOf returns the program of a container and its arguments, as they are declared.
func programOf(c *corev1.Container) []string { return slices.Concat(c.Command, c.Args) }

// startProcess starts a container's process in its environment, with a folder for
// temporary files that is empty, like the file system of a new container.
func (l *loop) startProcess(p *pod, container *corev1.Container, id string) (*process.Process, error) {
	if l.killed {
		return nil, errors.New("run was killed")
	}
	temp := filepath.Join(p.folder, "tmp", container.Name)
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return nil, fmt.Errorf("create folder for temporary files: %w", err)
	}
	environment := environ.For(container, environ.Sources{
		Pod: p.object, ConfigMaps: l.options.Objects.ConfigMaps, Secrets: l.options.Objects.Secrets,
		Base: l.base, Volumes: p.volumes, TempDir: temp,
	})
	spec := process.Spec{
		Command: environment.Command, Env: environment.List(), Dir: container.WorkingDir, Set: id, Leads: true,
		Stdout: l.writer(p, container.Name, "stdout"), Stderr: l.writer(p, container.Name, "stderr"),
	}
	running, err := l.keeper.Start(spec)
	if err != nil {
		return nil, err
	}
	l.execs.containers.Store(id, execTarget{spec, running})
	return running, nil
}

// exited handles the end of a container's processes.
func (l *loop) exited(now time.Time, p *pod, name, id string, exit process.Exit) {
	delete(p.running, name)
	l.execs.containers.Delete(id)
	ended := lifecycle.ContainerExit{ID: id, Code: exit.Code, Signal: exit.Signal, FinishedAt: exit.At}
	l.worker.ContainerChanged(identity.ContainerKey{PodUID: p.object.UID, Name: name},
		thresholds.ContainerRun{ID: id, Reason: reasonOf(&ended)})
	if exit.Code != 0 && exit.Signal == 0 {
		if taken := l.listeners.takenByOthers(p.object); taken != "" {
			l.addEvent(now, p, name, corev1.EventTypeWarning, reasonPortInUse, taken)
		}
		l.failed(now, p, name, p.lastErrors[name])
	}
	if exit.Code != 0 {
		// As in a cluster with terminationMessagePolicy FallbackToLogsOnError.
		ended.Message = p.lastErrors[name]
	}
	l.act(now, p, p.machine.ContainerExited(now, name, ended))
}

// reasonOf says why a container does not run, with the text of the agent.
func reasonOf(exit *lifecycle.ContainerExit) string {
	reason := fmt.Sprintf("exited with code %d", exit.Code)
	if exit.Message != "" {
		reason += " (" + exit.Reason + ": " + exit.Message + ")"
	}
	return reason
}

// probed handles a transition of one of the kubelet's probes of a container.
func (l *loop) probed(now time.Time, planned plannedProbe, name string, to v1alpha1.ProbeState) {
	p := planned.pod
	switch {
	case planned.kind == ProbeReadiness:
		p.machine.ReadinessChanged(name, planned.id, to == v1alpha1.ProbeSucceeded)
		p.dirty = true
	case planned.kind == ProbeStartup && to == v1alpha1.ProbeSucceeded:
		l.act(now, p, p.machine.StartupSucceeded(now, name, planned.id))
	case to == v1alpha1.ProbeFailed:
		l.act(now, p, p.machine.ProbeFailed(now, name, planned.id, strings.ToLower(string(planned.kind)), planned.declared))
	}
}
