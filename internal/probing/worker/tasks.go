// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// Problem is a planned probe that can never run as it is planned.
type Problem struct {
	// Pod is the planned pod.
	Pod types.NamespacedName
	// Probe is the planned name, marker#probe if it is valid.
	Probe string
	// Err names the invalid field and what is allowed.
	Err error
}

// TasksOf converts the pods of a plan into tasks, in the order of the plan. A probe that
// can't run yet, because its pod has no address, has a task without a target. A probe
// that can never run is also in problems; it has a task, without a target, if its name is
// valid.
func TasksOf(pods []v1alpha1.PodProbe) (tasks []Task, problems []Problem) {
	for i := range pods {
		pod := &pods[i]
		name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		for j := range pod.Probes {
			planned := &pod.Probes[j]
			key, err := identity.KeyOf(pod, planned)
			if err != nil {
				problems = append(problems, Problem{Pod: name, Probe: planned.Name, Err: err})
				continue
			}
			task, err := NewTask(key, name, &planned.Probe, pod.IP)
			if err != nil {
				problems = append(problems, Problem{Pod: name, Probe: planned.Name, Err: err})
			}
			if task.Target.HTTP != nil {
				task.Target.HTTP.PublishBody = planned.PublishBody
			}
			if startup, err := newStartup(planned.Startup, pod.IP); err != nil {
				problems = append(problems, Problem{Pod: name, Probe: planned.Name, Err: fmt.Errorf("startup: %w", err)})
				task.Target = probing.Target{}
			} else {
				task.Startup = startup
			}
			task.Plan, task.RuntimeUID = planned.Plan, types.UID(pod.RuntimeUID)
			tasks = append(tasks, task)
		}
	}
	return tasks, problems
}

// NewTask returns the task of one probe whose defaults and named ports are resolved. If
// the error is not nil, the probe can't run and the task has no target.
func NewTask(key identity.Key, pod types.NamespacedName, spec *v1alpha1.ContainerProbeSpec, podIP string) (Task, error) {
	task := Task{Key: key, Pod: pod, Policy: thresholds.PlannedPolicy(spec), Handler: spec.ProbeHandler, PodIP: podIP}
	if podIP == "" && spec.Exec == nil {
		return task, nil
	}
	var err error
	if task.Target, err = probing.Parse(&spec.Probe, podIP); err != nil {
		return task, err
	}
	task.Target.Timeout = thresholds.PlannedTimeout(spec)
	return task, nil
}

// PhaseOf returns the position of a probe's runs within its period, in [0, 1). It is a hash
// of the key: the same after a restart of the agent, and evenly distributed over the probes
// of a node and of a cluster.
func PhaseOf(key identity.Key) float64 {
	const bits = 53 // The precision of a float64.
	hash := sha256.New()
	for _, part := range []string{string(key.PodUID), key.Name, key.Marker, key.Probe} {
		// No part contains a NUL byte.
		_, _ = hash.Write(append([]byte(part), 0))
	}
	return float64(binary.BigEndian.Uint64(hash.Sum(nil))>>(64-bits)) / (1 << bits)
}
