// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/environ"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// port is a port that only one pod can use on an address.
type port struct {
	number   int32
	protocol corev1.Protocol
}

// portConflicts returns an error for each port that two pods use: the ports that their
// containers declare, and those that their probes connect to.
func portConflicts(pods []*corev1.Pod) error {
	users := map[port]*corev1.Pod{}
	var errs []error
	for _, pod := range pods {
		for _, p := range portsOf(pod) {
			before, taken := users[p]
			if taken && before != pod {
				errs = append(errs, fmt.Errorf(
					"pods %s and %s both use port %d (%s) of the shared address: run only one of them, or use separate addresses",
					before.Name, pod.Name, p.number, p.protocol))
				continue
			}
			users[p] = pod
		}
	}
	return errors.Join(errs...)
}

// portsOf returns the ports that a pod declares, without duplicates.
func portsOf(pod *corev1.Pod) []port {
	var ports []port
	add := func(number int32, protocol corev1.Protocol) {
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		if p := (port{number, protocol}); number > 0 && !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			add(p.ContainerPort, p.Protocol)
		}
		for _, declared := range kubeletProbes(&c) {
			add(probedPort(&declared.spec.ProbeHandler), "")
		}
	}
	return ports
}

// probedPort returns the port number of the pod that a probe connects to, or 0 if it
// connects to none, to a named port or to another host.
func probedPort(h *corev1.ProbeHandler) int32 {
	if h.HTTPGet != nil && h.HTTPGet.Host != "" || h.TCPSocket != nil && h.TCPSocket.Host != "" {
		return 0
	}
	switch handler, _ := probing.HandlerOf(h); handler {
	case probing.HandlerHTTP:
		return h.HTTPGet.Port.IntVal
	case probing.HandlerTCP:
		return h.TCPSocket.Port.IntVal
	case probing.HandlerGRPC:
		return h.GRPC.Port
	default:
		return 0
	}
}

// initialized returns a copy of a pod whose init containers have succeeded.
func initialized(object *corev1.Pod) *corev1.Pod {
	ready := object.DeepCopy()
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	return ready
}

// warnings returns the problems that the markers' status reports in a cluster, for pods
// whose init containers have succeeded, each with the place in the manifest.
func warnings(objects *manifest.Objects, markers []*plan.Marker, pods []*pod) []string {
	var out []string
	warn := func(at, format string, args ...any) {
		if at != "" {
			at += ": "
		}
		if text := at + fmt.Sprintf(format, args...); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	probeAt := func(p *pod, id identity.ID, path string) string {
		in := func(m v1alpha1.PodProbeMarker) bool { return m.Namespace == p.object.Namespace && m.Name == id.Marker }
		if i := slices.IndexFunc(objects.Markers, in); i >= 0 {
			is := func(probe v1alpha1.PodContainerProbe) bool { return probe.Name == id.Probe }
			path = fmt.Sprintf("spec.probes[%d]", slices.IndexFunc(objects.Markers[i].Spec.Probes, is)) + path
		}
		return objects.MarkerPlace(types.NamespacedName{Namespace: p.object.Namespace, Name: id.Marker}, path)
	}
	for _, m := range plan.Sorted(markers) {
		if !slices.ContainsFunc(pods, func(p *pod) bool { return m.Selects(p.object) }) {
			at := objects.MarkerPlace(types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, "spec.selector")
			warn(at, "PodProbeMarker %s: selector matches no pods", m.Name)
		}
	}
	const absent = "%s %s: no program %q on this machine"
	for _, p := range pods {
		for _, machine := range p.machine.Containers() {
			for _, each := range commandsOf(machine.Spec) {
				name := machine.Spec.Name
				if of, found := strings.CutSuffix(each.path, ".exec.command[0]"); found {
					name += ": " + of
				}
				if isAbsent(objects, p.object, machine.Spec, each.command) {
					warn(objects.ContainerPlace(p.object, machine.Spec.Name, each.path), absent, "container", name, each.command[0])
				}
			}
		}
		planned := plan.Pod(initialized(p.object), markers, plan.KubernetesDefaults())
		for _, problem := range planned.Unplanned(p.object) {
			warn(probeAt(p, problem.ID, ""), "probe %s is skipped for pod %s: %s", problem.ID, p.object.Name, diagnosis.OfProblem(problem))
		}
		for _, probe := range planned.Probes {
			action, c := probe.Source.Probe.Exec, p.machine.Container(probe.Source.ContainerName)
			if action != nil && c != nil && isAbsent(objects, p.object, c.Spec, action.Command) {
				warn(probeAt(p, probe.ID, ".probe.exec.command[0]"), absent, "probe", probe.ID, action.Command[0])
			}
		}
		_, conflicts := mark.Claim(planned.Probes)
		for _, c := range conflicts {
			warn(probeAt(p, c.Loser, ""), "probe %s does not set a mark on pod %s: %s", c.Loser, p.object.Name, diagnosis.Conflict(c))
		}
	}
	return out
}

// commandIn is a command of a container and the path of its program.
type commandIn struct {
	path    string
	command []string
}

// commandsOf returns the commands of a container, its probes and its hooks.
func commandsOf(c *corev1.Container) []commandIn {
	all := []commandIn{{"command[0]", c.Command}}
	for _, declared := range kubeletProbes(c) {
		if action := declared.spec.Exec; action != nil {
			all = append(all, commandIn{strings.ToLower(string(declared.kind)) + "Probe.exec.command[0]", action.Command})
		}
	}
	if c.Lifecycle != nil {
		all = append(all, commandIn{"lifecycle.postStart.exec.command[0]", hookOf(c.Lifecycle.PostStart)},
			commandIn{"lifecycle.preStop.exec.command[0]", hookOf(c.Lifecycle.PreStop)})
	}
	return all
}

func hookOf(hook *corev1.LifecycleHandler) []string {
	if hook == nil || hook.Exec == nil {
		return nil
	}
	return hook.Exec.Command
}

// isAbsent reports whether a container cannot run the command because its program is not on this machine. Programs that depend on
// variables, are in volumes, or may be files of init containers do not count: what is there is not known before the run.
func isAbsent(objects *manifest.Objects, pod *corev1.Pod, c *corev1.Container, command []string) bool {
	if len(command) == 0 || strings.Contains(command[0], "$(") || len(named(c.VolumeMounts, command[:1])) > 0 {
		return false
	}
	if strings.Contains(command[0], "/") && (!filepath.IsAbs(command[0]) || len(pod.Spec.InitContainers) > 0) {
		return false
	}
	declared := environ.For(c, environ.Sources{Pod: pod, ConfigMaps: objects.ConfigMaps, Secrets: objects.Secrets})
	if _, setsPath := declared.Variables["PATH"]; setsPath {
		return false
	}
	_, err := exec.LookPath(command[0])
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}
