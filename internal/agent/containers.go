// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// containerRunner receives the runs of containers: a worker.Worker.
type containerRunner interface {
	ContainerChanged(container probeid.ContainerKey, run streak.ContainerRun)
	ContainerGone(container probeid.ContainerKey)
	ContainerUnknown(container probeid.ContainerKey)
}

// runtimePod identifies a pod in the container runtime.
type runtimePod struct {
	uid  types.UID
	name types.NamespacedName
}

// containers passes the containers of the node to the runner. The runtime knows a static pod by
// another UID than the plan, so that its containers are passed on under both. The annotations of
// a pod can state any UID; therefore namespace and name must be equal too.
type containers struct {
	runner containerRunner

	// mu also orders the calls of the runner.
	mu sync.Mutex
	// known are the containers that the runtime has described, and unknowns those that it cannot
	// describe now.
	known    map[probeid.ContainerKey]cri.Instance
	unknowns map[probeid.ContainerKey]bool
	// mirrors are the UIDs of the planned mirror pods.
	mirrors map[runtimePod]types.UID
}

func newContainers(runner containerRunner) *containers {
	return &containers{
		runner: runner, known: map[probeid.ContainerKey]cri.Instance{}, unknowns: map[probeid.ContainerKey]bool{},
	}
}

// Follow passes the containers of the plan's static pods to the runner. forget removes those of
// static pods that are no longer planned.
func (c *containers) Follow(pods []v1alpha1.PodProbe) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.mirrors
	c.mirrors = map[runtimePod]types.UID{}
	for i := range pods {
		if pod := &pods[i]; pod.RuntimeUID != "" {
			c.mirrors[runtimePodOf(pod)] = types.UID(pod.UID)
		}
	}
	var gone []probeid.ContainerKey
	for _, instance := range c.known {
		pod := runtimePod{instance.PodUID, instance.Pod}
		was, is := before[pod], c.mirrors[pod]
		if is != "" && is != was {
			c.runner.ContainerChanged(mirrored(instance.ContainerKey, is), runOf(instance))
		}
		if was != "" && was != is {
			gone = append(gone, mirrored(instance.ContainerKey, was))
		}
	}
	for key := range c.unknowns {
		for pod, is := range c.mirrors {
			if pod.uid == key.PodUID && before[pod] != is {
				c.runner.ContainerUnknown(mirrored(key, is))
			}
		}
		for pod, was := range before {
			if pod.uid == key.PodUID && c.mirrors[pod] != was {
				gone = append(gone, mirrored(key, was))
			}
		}
	}
	return func() {
		for _, key := range gone {
			c.runner.ContainerGone(key)
		}
	}
}

// changed passes a new or changed container to the runner.
func (c *containers) changed(instance cri.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[instance.ContainerKey] = instance
	delete(c.unknowns, instance.ContainerKey)
	c.runner.ContainerChanged(instance.ContainerKey, runOf(instance))
	if uid := c.mirrors[runtimePod{instance.PodUID, instance.Pod}]; uid != "" {
		c.runner.ContainerChanged(mirrored(instance.ContainerKey, uid), runOf(instance))
	}
}

// running returns the UIDs of the pods with a running container.
func (c *containers) running() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := make(map[string]bool, len(c.known))
	for key, instance := range c.known {
		if instance.Running {
			pods[string(key.PodUID)] = true
		}
	}
	return pods
}

// gone removes a container that the runtime no longer has.
func (c *containers) gone(key probeid.ContainerKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, key)
	delete(c.unknowns, key)
	c.runner.ContainerGone(key)
	for _, mirror := range c.mirroredOf(key) {
		c.runner.ContainerGone(mirror)
	}
}

// unknown reports that the runtime cannot describe a container.
func (c *containers) unknown(key probeid.ContainerKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unknowns[key] = true
	c.runner.ContainerUnknown(key)
	for _, mirror := range c.mirroredOf(key) {
		c.runner.ContainerUnknown(mirror)
	}
}

// mirroredOf returns the keys of a container under the UIDs of the mirror pods. It compares only
// the UID, because the name of the pod of a container that was never described is not known, and
// because no command runs in a container that is unknown or gone.
func (c *containers) mirroredOf(key probeid.ContainerKey) (mirrors []probeid.ContainerKey) {
	for pod, uid := range c.mirrors {
		if pod.uid == key.PodUID {
			mirrors = append(mirrors, mirrored(key, uid))
		}
	}
	return mirrors
}

// runtimePodOf returns how the runtime identifies the static pod of a planned mirror pod.
func runtimePodOf(pod *v1alpha1.PodProbe) runtimePod {
	return runtimePod{types.UID(pod.RuntimeUID), types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}}
}

// mirrored returns the key of a static pod's container under the UID of the mirror pod.
func mirrored(key probeid.ContainerKey, uid types.UID) probeid.ContainerKey {
	return probeid.ContainerKey{PodUID: uid, Name: key.Name}
}

func runOf(c cri.Instance) streak.ContainerRun {
	return streak.ContainerRun{ID: c.ID, Running: c.Running, StartedAt: c.StartedAt, Reason: c.Reason}
}
