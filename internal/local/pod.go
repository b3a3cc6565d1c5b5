// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

type pod struct {
	// object is the pod as the API of a cluster would return it.
	object  *corev1.Pod
	machine *lifecycle.PodMachine
	// folder is the pod's folder, volumes are the folders of its volumes by name.
	folder  string
	volumes map[string]string
	// running has the processes of its containers by the container's name.
	running map[string]*process.Process
	owned   mark.Marks
	// kubelet has the states of the kubelet's probes, marked those of the markers' probes.
	kubelet map[kubeletProbe]*ProbeChange
	marked  map[identity.Key]*ProbeChange
	// logs are the last lines of its containers.
	logs []Change
	// lastErrors has the last line that each running container wrote to stderr.
	lastErrors map[string]string
	// hinted has the containers and volumes that have had an event about the mount path, as container/volume.
	hinted map[string]bool
	// dirty reports whether the status may have changed.
	dirty bool
}

// kubeletProbe identifies one of the kubelet's probes within a pod.
type kubeletProbe struct {
	container string
	kind      ProbeType
}

// newPod returns a pod that is bound to this machine and not started.
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
		kubelet: map[kubeletProbe]*ProbeChange{},
		marked:  map[identity.Key]*ProbeChange{},

		lastErrors: map[string]string{},
		hinted:     map[string]bool{},
	}
	for _, c := range p.machine.Containers() {
		for _, declared := range kubeletProbes(c.Spec) {
			p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}] = &ProbeChange{
				Type: declared.kind, Container: c.Spec.Name, Handler: handlerOf(declared.spec),
			}
		}
	}
	object.Status = corev1.PodStatus{Phase: corev1.PodPending}
	object.Status = p.machine.Status(time.Time{})
	object.Status.Conditions = nil
	return p
}

// admit sets the parts of the status that are known when the kubelet has admitted the pod.
func (p *pod) admit(now time.Time, ip string) {
	started := metav1.NewTime(now)
	p.object.CreationTimestamp = started
	p.object.Status.StartTime = &started
	p.object.Status.HostIP = loopback
	p.object.Status.PodIP = ip
	p.dirty = true
}

func (p *pod) delete(now time.Time) {
	deleted := metav1.NewTime(now)
	p.object.DeletionTimestamp = &deleted
	p.object.DeletionGracePeriodSeconds = p.object.Spec.TerminationGracePeriodSeconds
}

// done reports whether no process of the pod runs or will run again.
func (p *pod) done() bool { return p.machine.Done() && len(p.running) == 0 }

// containerStarted resets the probes of a container that has started. The worker resets
// the states of the markers' probes itself.
func (p *pod) containerStarted(c *lifecycle.ContainerMachine) {
	for _, declared := range kubeletProbes(c.Spec) {
		state := p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}]
		*state = ProbeChange{Type: state.Type, Container: state.Container, Handler: state.Handler}
	}
	for key, state := range p.marked {
		if key.Name == c.Spec.Name {
			state.Runs, state.Streak, state.Threshold = 0, 0, 0
		}
	}
}

// view returns the current state of the pod. The markers are sorted by name.
func (p *pod) view(markers []v1alpha1.PodProbeMarker) PodView {
	view := PodView{
		Pod:               p.object.DeepCopy(),
		MarkedLabels:      slices.DeleteFunc(p.owned.Names(mark.KindLabel), isTicket),
		MarkedAnnotations: p.owned.Names(mark.KindAnnotation),
		MarkedConditions:  p.owned.Names(mark.KindCondition),
		Logs:              slices.Clone(p.logs),
	}
	maps.DeleteFunc(view.Pod.Labels, func(key, _ string) bool { return isTicket(key) })
	add := func(known *ProbeChange) {
		if known != nil {
			view.Probes = append(view.Probes, *known)
			view.Probes[len(view.Probes)-1].Ran = false
		}
	}
	for _, c := range p.machine.Containers() {
		for _, declared := range kubeletProbes(c.Spec) {
			add(p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}])
		}
	}
	for i := range markers {
		for _, probe := range markers[i].Spec.Probes {
			add(p.marked[identity.Key{
				ContainerKey: identity.ContainerKey{PodUID: p.object.UID, Name: probe.ContainerName},
				ID:           identity.ID{Marker: markers[i].Name, Probe: probe.Name},
			}])
		}
	}
	return view
}
