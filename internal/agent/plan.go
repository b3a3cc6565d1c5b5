// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/worker"
	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/streak"
)

// planOf reads the plan of an object; nil has an empty one.
func planOf(object *v1alpha1.NodePodProbe) report.Plan {
	if object == nil {
		return report.Plan{}
	}
	return report.Plan{Generation: object.Generation, Pods: object.Spec.PodProbes}
}

// probesOf makes of a plan what the worker runs, with the states to start from. Probes
// that can't be run are left out and named in problems, by pod and probe. A network probe
// of a pod without an address is left out too, and is no problem: the address comes.
func probesOf(plan report.Plan, restored report.States) (probes []worker.Probe, problems map[string]error) {
	problems = map[string]error{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			planned := &pod.Probes[j]
			if pod.IP == "" && planned.Probe.Exec == nil {
				continue
			}
			p, err := probeOf(pod, planned)
			if err != nil {
				problems[fmt.Sprintf("%s/%s %s", pod.Namespace, pod.Name, planned.Name)] = err
				continue
			}
			p.Restored = restored[p.Key]
			probes = append(probes, p)
		}
	}
	return probes, problems
}

// unstarted returns those of the states whose probes are planned and not among those that
// are run.
func unstarted(plan report.Plan, run []worker.Probe, states report.States) report.States {
	rest := report.States{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			key, err := report.KeyOf(pod, &pod.Probes[j])
			if state, found := states[key]; err == nil && found {
				rest[key] = state
			}
		}
	}
	for i := range run {
		delete(rest, run[i].Key)
	}
	return rest
}

func probeOf(pod *v1alpha1.PodProbe, planned *v1alpha1.ContainerProbe) (worker.Probe, error) {
	key, err := report.KeyOf(pod, planned)
	if err != nil {
		return worker.Probe{}, err
	}
	spec := &planned.Probe.Probe
	target, err := probe.Parse(spec, pod.IP)
	if err != nil {
		return worker.Probe{}, err
	}
	return worker.Probe{
		Key:     key,
		Policy:  streak.PolicyOf(spec),
		Handler: spec.ProbeHandler,
		PodIP:   pod.IP,
		Target:  target,
	}, nil
}
