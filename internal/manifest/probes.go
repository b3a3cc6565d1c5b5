// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing"
)

// probes validates the startup, liveness and readiness probe of a container.
func (v *validator) probes(path *field.Path, c *corev1.Container) {
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
		// restarts is whether a failure of the probe restarts the container.
		restarts bool
	}{
		{"livenessProbe", c.LivenessProbe, true},
		{"readinessProbe", c.ReadinessProbe, false},
		{"startupProbe", c.StartupProbe, true},
	} {
		if p.probe == nil {
			continue
		}
		at := path.Child(p.name)
		v.timing(at, p.probe)
		v.restarting(at, p.probe, p.restarts)
		before := len(v.errs)
		v.handler(at, &p.probe.ProbeHandler)
		if len(v.errs) > before {
			continue
		}
		_, problem := plan.Resolve(v.pod, c.Name, p.probe, plan.KubernetesDefaults())
		if problem.Reason == plan.PortNotFound {
			v.add(field.Invalid(at, problem.Port, "the container has no port with this name"))
		}
	}
}

// timing validates the durations and thresholds. Zero means unset.
func (v *validator) timing(path *field.Path, probe *corev1.Probe) {
	for _, n := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", probe.InitialDelaySeconds},
		{"timeoutSeconds", probe.TimeoutSeconds},
		{"periodSeconds", probe.PeriodSeconds},
		{"successThreshold", probe.SuccessThreshold},
		{"failureThreshold", probe.FailureThreshold},
	} {
		v.notNegative(path.Child(n.name), int64(n.value))
	}
}

// restarting validates the fields whose rules depend on whether a failure restarts the
// container.
func (v *validator) restarting(path *field.Path, probe *corev1.Probe, restarts bool) {
	if restarts && probe.SuccessThreshold > 1 {
		v.add(field.Invalid(path.Child("successThreshold"), probe.SuccessThreshold, "must be 1 for liveness and startup probes"))
	}
	grace := probe.TerminationGracePeriodSeconds
	switch {
	case grace == nil:
	case !restarts:
		v.add(field.Invalid(path.Child("terminationGracePeriodSeconds"), *grace,
			"must not be set for readiness probes: they do not restart the container"))
	case *grace < 1:
		v.add(field.Invalid(path.Child("terminationGracePeriodSeconds"), *grace, "must be 1 or more"))
	}
}

func (v *validator) handler(path *field.Path, h *corev1.ProbeHandler) {
	const allowed = "must have exactly one of exec, httpGet, tcpSocket and grpc"
	switch handlers := len(probing.HandlersOf(h)); {
	case handlers == 0:
		v.add(field.Required(path, allowed))
	case handlers > 1:
		v.add(field.Forbidden(path, allowed))
	case h.Exec != nil:
		v.exec(path.Child("exec"), h.Exec)
	case h.HTTPGet != nil:
		at := path.Child("httpGet")
		v.port(at.Child("port"), h.HTTPGet.Port)
		v.oneOf(at.Child("scheme"), string(h.HTTPGet.Scheme), "", "HTTP", "HTTPS")
		for i, header := range h.HTTPGet.HTTPHeaders {
			v.each(at.Child("httpHeaders").Index(i).Child("name"), header.Name, validation.IsHTTPHeaderName(header.Name))
		}
	case h.TCPSocket != nil:
		v.port(path.Child("tcpSocket", "port"), h.TCPSocket.Port)
	case h.GRPC != nil:
		v.each(path.Child("grpc", "port"), h.GRPC.Port, validation.IsValidPortNum(int(h.GRPC.Port)))
	}
}

func (v *validator) exec(path *field.Path, action *corev1.ExecAction) {
	if len(action.Command) == 0 {
		v.add(field.Required(path.Child("command"), "must be a program and its arguments"))
	}
}

func (v *validator) port(path *field.Path, port intstr.IntOrString) {
	if port.Type == intstr.Int {
		v.each(path, port.IntVal, validation.IsValidPortNum(int(port.IntVal)))
		return
	}
	v.each(path, port.StrVal, validation.IsValidPortName(port.StrVal))
}

// lifecycle validates the hooks. A local run supports exec and sleep; it ignores httpGet.
func (v *validator) lifecycle(path *field.Path, lifecycle *corev1.Lifecycle) {
	if lifecycle == nil {
		return
	}
	v.hook(path.Child("postStart"), lifecycle.PostStart)
	v.hook(path.Child("preStop"), lifecycle.PreStop)
}

func (v *validator) hook(path *field.Path, hook *corev1.LifecycleHandler) {
	if hook == nil {
		return
	}
	switch grace := *v.pod.Spec.TerminationGracePeriodSeconds; {
	case count(hook.Exec != nil, hook.HTTPGet != nil, hook.TCPSocket != nil, hook.Sleep != nil) != 1:
		v.add(field.Invalid(path, "", "must have exactly one of exec, httpGet and sleep"))
	case hook.Exec != nil:
		v.exec(path.Child("exec"), hook.Exec)
	case hook.Sleep != nil && (hook.Sleep.Seconds < 0 || hook.Sleep.Seconds > grace):
		v.add(field.Invalid(path.Child("sleep", "seconds"), hook.Sleep.Seconds,
			"must be from 0 to terminationGracePeriodSeconds"))
	}
}
