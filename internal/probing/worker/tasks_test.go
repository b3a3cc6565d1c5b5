// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

func TestTasksOf(t *testing.T) {
	tcp := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}
	cases := map[string]struct {
		ip      string
		handler corev1.ProbeHandler
		name    string
		timeout int32
		// tasks are the addresses of the tasks' targets, empty without a target.
		tasks    []string
		problems []string
	}{
		"network probe, IPv4":              {ip: "10.0.0.1", handler: tcp, name: "m#p", timeout: 1, tasks: []string{"10.0.0.1:80"}},
		"network probe, IPv6":              {ip: "fd00::1", handler: tcp, name: "m#p", timeout: 1, tasks: []string{"[fd00::1]:80"}},
		"network probe without an address": {handler: tcp, name: "m#p", timeout: 1, tasks: []string{""}},
		"invalid name":                     {ip: "10.0.0.1", handler: tcp, name: "p", timeout: 1, problems: []string{"games/pod p"}},
		"no handler":                       {ip: "10.0.0.1", name: "m#p", timeout: 1, tasks: []string{""}, problems: []string{"games/pod m#p"}},
		"timeout 0":                        {ip: "10.0.0.1", handler: tcp, name: "m#p", tasks: []string{""}, problems: []string{"games/pod m#p"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tasks, found := worker.TasksOf([]v1alpha1.PodProbe{{
				Name: "pod", Namespace: "games", UID: "pod-uid", IP: tc.ip,
				Probes: []v1alpha1.ContainerProbe{{Name: tc.name, ContainerName: "main", Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
					ProbeHandler: tc.handler, PeriodSeconds: 10, TimeoutSeconds: tc.timeout, SuccessThreshold: 1, FailureThreshold: 3,
				}}}},
			}})
			var targets, problems []string
			for _, task := range tasks {
				address := ""
				if task.Target.TCP != nil {
					address = task.Target.TCP.Address
				}
				targets = append(targets, address)
				if task.Pod != podName() || task.Key.String() != "m#p" {
					t.Errorf("task of probe %s of pod %s, want m#p of %s", task.Key, task.Pod, podName())
				}
			}
			for _, problem := range found {
				problems = append(problems, problem.Pod.String()+" "+problem.Probe)
			}
			if diff := cmp.Diff(tc.tasks, targets); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTasksOfPublishBody(t *testing.T) {
	get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), Path: "/"}}
	for _, publish := range []bool{true, false} {
		tasks, problems := worker.TasksOf([]v1alpha1.PodProbe{{
			Name: "pod", Namespace: "games", UID: "pod-uid", IP: "10.0.0.1",
			Probes: []v1alpha1.ContainerProbe{{
				Name: "m#p", ContainerName: "main", PublishBody: publish,
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: get, TimeoutSeconds: 1}},
			}},
		}})
		if len(tasks) != 1 || len(problems) > 0 || tasks[0].Target.HTTP.PublishBody != publish {
			t.Errorf("publishBody %t: tasks %+v, problems %v", publish, tasks, problems)
		}
	}
}
