// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
)

// Defaults are the values of fields that a marker leaves unset; zero means unset. The times are
// in seconds.
type Defaults struct {
	// InitialDelaySeconds is the minimum time from the start of a container to the first probe.
	InitialDelaySeconds int32
	// PeriodSeconds is the time between the starts of two probes, and TimeoutSeconds the
	// maximum duration of one.
	PeriodSeconds, TimeoutSeconds int32
	// SuccessThreshold and FailureThreshold are the numbers of consecutive results that change
	// the state.
	SuccessThreshold, FailureThreshold int32
	// MessageUpdates is how messages that change while the state stays the same are reported. Empty
	// means MessageUpdatesLimited.
	MessageUpdates v1alpha1.MessageUpdates
}

// KubernetesDefaults returns the defaults that core/v1 Probe documents.
// Messages are limited.
func KubernetesDefaults() Defaults { return NewDefaults(configv1alpha1.KubernetesProbeDefaults(), "") }

// NewDefaults returns the defaults in the configuration of a manager.
func NewDefaults(probes configv1alpha1.ProbeDefaults, updates v1alpha1.MessageUpdates) Defaults {
	return Defaults{
		InitialDelaySeconds: probes.InitialDelaySeconds, PeriodSeconds: probes.PeriodSeconds, TimeoutSeconds: probes.TimeoutSeconds,
		SuccessThreshold: probes.SuccessThreshold, FailureThreshold: probes.FailureThreshold,
		MessageUpdates: updates,
	}
}

// resolve returns the probe with all defaults and port numbers. A reason in the problem means
// that the probe cannot run in this pod.
func resolve(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe, defaults Defaults) (v1alpha1.ContainerProbeSpec, Problem) {
	c := container(pod, probe.ContainerName)
	if c == nil {
		return v1alpha1.ContainerProbeSpec{}, Problem{Container: probe.ContainerName, Reason: ContainerNotFound}
	}
	handler, problem := resolveHandler(c, &probe.Probe.ProbeHandler)
	if problem.Reason != "" {
		problem.Container = c.Name
		return v1alpha1.ContainerProbeSpec{}, problem
	}
	return v1alpha1.ContainerProbeSpec{PeriodMilliseconds: probe.Probe.PeriodMilliseconds, TimeoutMilliseconds: probe.Probe.TimeoutMilliseconds, Probe: corev1.Probe{
		ProbeHandler:        handler,
		InitialDelaySeconds: orDefault(probe.Probe.InitialDelaySeconds, defaults.InitialDelaySeconds),
		PeriodSeconds:       orDefault(probe.Probe.PeriodSeconds, defaults.PeriodSeconds),
		TimeoutSeconds:      orDefault(probe.Probe.TimeoutSeconds, defaults.TimeoutSeconds),
		SuccessThreshold:    orDefault(probe.Probe.SuccessThreshold, defaults.SuccessThreshold),
		FailureThreshold:    orDefault(probe.Probe.FailureThreshold, defaults.FailureThreshold),
	}}, Problem{}
}

func orDefault(value, unset int32) int32 {
	if value <= 0 {
		return unset
	}
	return value
}

// resolveHandler copies the handler, with a port number. It drops the host, because a probe may
// reach only its own pod.
func resolveHandler(c *corev1.Container, h *corev1.ProbeHandler) (corev1.ProbeHandler, Problem) {
	var resolved corev1.ProbeHandler
	handler, err := probing.HandlerOf(h)
	if err != nil {
		return resolved, Problem{Reason: HandlerInvalid}
	}
	switch handler {
	case probing.HandlerExec:
		resolved.Exec = h.Exec.DeepCopy()
	case probing.HandlerHTTP:
		port, ok := portNumber(c, h.HTTPGet.Port)
		if !ok {
			return resolved, Problem{Reason: PortNotFound, Port: h.HTTPGet.Port.String()}
		}
		resolved.HTTPGet = h.HTTPGet.DeepCopy()
		resolved.HTTPGet.Port = intstr.FromInt32(port)
		resolved.HTTPGet.Host = ""
		if resolved.HTTPGet.Scheme == "" {
			resolved.HTTPGet.Scheme = corev1.URISchemeHTTP
		}
		if resolved.HTTPGet.Path == "" {
			resolved.HTTPGet.Path = "/"
		}
	case probing.HandlerTCP:
		port, ok := portNumber(c, h.TCPSocket.Port)
		if !ok {
			return resolved, Problem{Reason: PortNotFound, Port: h.TCPSocket.Port.String()}
		}
		resolved.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}
	case probing.HandlerGRPC:
		if !isPort(h.GRPC.Port) {
			return resolved, Problem{Reason: PortNotFound, Port: strconv.Itoa(int(h.GRPC.Port))}
		}
		// The empty name means the whole server. It is set explicitly, because an API server
		// that adds the default would otherwise store a different plan.
		service := ""
		if h.GRPC.Service != nil {
			service = *h.GRPC.Service
		}
		resolved.GRPC = h.GRPC.DeepCopy()
		resolved.GRPC.Service = &service
	default:
		return resolved, Problem{Reason: HandlerInvalid}
	}
	return resolved, Problem{}
}

// portNumber resolves the port as the kubelet does: a string is the name of a port of the
// container or, if there is none, a number.
func portNumber(c *corev1.Container, port intstr.IntOrString) (int32, bool) {
	if port.Type == intstr.Int {
		return port.IntVal, isPort(port.IntVal)
	}
	for i := range c.Ports {
		if p := &c.Ports[i]; p.Name == port.StrVal && p.Name != "" {
			return p.ContainerPort, isPort(p.ContainerPort)
		}
	}
	number, err := strconv.ParseInt(port.StrVal, 10, 32)
	if err != nil {
		return 0, false
	}
	return int32(number), isPort(int32(number))
}

func isPort(number int32) bool { return number >= 1 && number <= 65535 }

// Resolve resolves one probe of a container by the rules for markers: it sets the defaults,
// replaces port names by numbers, and drops the host. It is for probes in the pod's own spec. A
// reason in the problem means that the probe cannot run.
func Resolve(pod *corev1.Pod, containerName string, probe *corev1.Probe, defaults Defaults) (corev1.Probe, Problem) {
	resolved, problem := resolve(pod, &v1alpha1.PodContainerProbe{
		ContainerName: containerName,
		Probe:         v1alpha1.ContainerProbeSpec{Probe: *probe},
	}, defaults)
	if problem.Reason != "" {
		problem.Namespace, problem.Pod = pod.Namespace, pod.Name
	}
	return resolved.Probe, problem
}
