// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/podstatus"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// pod is one pod of the run.
type pod struct {
	// object is the pod as a cluster's API would show it.
	object  *corev1.Pod
	machine *lifecycle.Pod
	// volumes are the folders of its volumes, by name.
	volumes map[string]string
	// folder is the pod's own.
	folder string
	// running has the processes of its containers, by the container's name.
	running map[string]*process.Process
	// owned are the marks that it carries.
	owned mark.Marks
	// probes are what is known of its probes: the kubelet's by container and type, the
	// markers' by their key.
	kubelet map[kubeletProbe]*Probe
	marked  map[probeid.Key]*Probe
	logs    logRing
	// dirty is whether its status may have changed.
	dirty bool
}

// kubeletProbe names one of the kubelet's probes within a pod.
type kubeletProbe struct {
	container string
	kind      ProbeType
}

// newPod returns a pod that is bound to this machine and of which nothing runs yet.
func newPod(object *corev1.Pod, node string, crashLoop lifecycle.CrashLoop) *pod {
	object = object.DeepCopy()
	object.UID = uuid.NewUUID()
	object.Generation = 1
	object.Spec.NodeName = node
	p := &pod{
		object:  object,
		machine: lifecycle.New(object, crashLoop),
		volumes: map[string]string{},
		running: map[string]*process.Process{},
		kubelet: map[kubeletProbe]*Probe{},
		marked:  map[probeid.Key]*Probe{},
	}
	for _, c := range p.machine.Containers() {
		for _, declared := range kubeletProbes(c.Spec) {
			p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}] = &Probe{
				Type: declared.kind, Container: c.Spec.Name, Handler: handlerOf(declared.spec),
			}
		}
	}
	object.Status = corev1.PodStatus{Phase: corev1.PodPending}
	object.Status = podstatus.Of(time.Time{}, object, p.machine)
	object.Status.Conditions = nil
	return p
}

// change starts a change of the pod.
func (p *pod) change(now time.Time, kind Kind, container string) Change {
	return Change{Kind: kind, Time: now, Namespace: p.object.Namespace, Pod: p.object.Name, Container: container}
}

// event makes the change that an event is.
func (p *pod) event(now time.Time, container, eventType, reason, message string) Change {
	c := p.change(now, KindEvent, container)
	c.Event = &Event{Type: eventType, Reason: reason, Message: message}
	return c
}
