// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/worker"
	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/probeid"
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
// that can't be run are named in problems, by pod and probe. A network probe of a pod
// without an address is no problem: the address comes. Of both, the worker gets those that
// have a restored state, or that it had before, without a target: a state that no run can
// change still ends with its container.
func probesOf(plan report.Plan, restored report.States, before map[probeid.Key]bool) (probes []worker.Probe, problems map[string]error) {
	problems = map[string]error{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			planned := &pod.Probes[j]
			p, err := probeOf(pod, planned)
			if err != nil {
				problems[fmt.Sprintf("%s/%s %s", pod.Namespace, pod.Name, planned.Name)] = err
			}
			p.Restored = restored[p.Key]
			if p.Target.Handler != "" || p.Restored.State != "" || before[p.Key] {
				probes = append(probes, p)
			}
		}
	}
	return probes, problems
}

// probeOf returns a probe without a target where it can't be run, and an error where it
// never can.
func probeOf(pod *v1alpha1.PodProbe, planned *v1alpha1.ContainerProbe) (worker.Probe, error) {
	key, err := report.KeyOf(pod, planned)
	if err != nil {
		return worker.Probe{}, err
	}
	spec := &planned.Probe.Probe
	p := worker.Probe{Key: key, Policy: streak.PolicyOf(spec), Handler: spec.ProbeHandler, PodIP: pod.IP}
	if pod.IP == "" && spec.Exec == nil {
		return p, nil
	}
	p.Target, err = probe.Parse(spec, pod.IP)
	return p, err
}
