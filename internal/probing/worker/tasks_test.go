// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
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
				Name: "pod", Namespace: "games", UID: "pod-uid", RuntimeUID: "hash", IP: tc.ip,
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
				if task.Pod != podName() || task.Key.String() != "m#p" || task.RuntimeUID != "hash" {
					t.Errorf("task of probe %s of pod %s with runtime UID %q, want m#p of %s with hash", task.Key, task.Pod, task.RuntimeUID, podName())
				}
			}
			for _, problem := range found {
				problems = append(problems, problem.Pod.String()+" "+problem.Probe)
			}
			expect.Equal(t, "targets", tc.tasks, targets)
			expect.Equal(t, "problems", tc.problems, problems)
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

func ofPlan(plan string) func(*worker.Task) { return func(p *worker.Task) { p.Plan = plan } }

func inContainer(name string) func(*worker.Task) {
	return func(p *worker.Task) { p.Key.Name = name }
}

// TestIdentityOfProbes checks which probes of a later plan continue probes of an earlier one.
func TestIdentityOfProbes(t *testing.T) {
	cases := map[string]struct {
		first, second []func(*worker.Task)
		want          []string
	}{
		"same marker": {[]func(*worker.Task){ofPlan("1")}, []func(*worker.Task){ofPlan("1")}, nil},
		"plan of OpenKruise after one of Seamark": {[]func(*worker.Task){ofPlan("1")}, nil, nil},
		"plan of Seamark after one of OpenKruise": {nil, []func(*worker.Task){ofPlan("1")}, nil},
		"recreated marker": {
			[]func(*worker.Task){ofPlan("1")}, []func(*worker.Task){ofPlan("2")},
			[]string{"1s p gone", "1s p >Failed"},
		},
		"moved to a container with another result": {
			nil, []func(*worker.Task){inContainer("other"), command("q")},
			[]string{"1s p gone", "1s p Succeeded>Failed"},
		},
		"moved to a container with the same result": {
			nil, []func(*worker.Task){inContainer("other")}, []string{"1s p gone"},
		},
		"moved to a container that has not run": {
			nil, []func(*worker.Task){inContainer("none")}, []string{"1s p gone"},
		},
		"moved to a container that has ended": {
			nil, []func(*worker.Task){inContainer("ended")}, []string{"1s p gone", "1s p Succeeded>Failed"},
		},
		"moved by a recreated marker": {
			[]func(*worker.Task){ofPlan("1")}, []func(*worker.Task){ofPlan("2"), inContainer("other")},
			[]string{"1s p gone", "1s p >Succeeded"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				success := true
				b.result = func(target probing.Target, _ int) (time.Duration, probing.Outcome, error) {
					return 0, probing.Outcome{Success: success && target.Exec.Command[0] == "p"}, nil
				}
				other := func(name string) identity.ContainerKey { return identity.ContainerKey{PodUID: "uid", Name: name} }
				b.ContainerChanged(other("other"), thresholds.ContainerRun{ID: "b", Running: true, StartedAt: time.Now()})
				b.ContainerChanged(other("ended"), thresholds.ContainerRun{ID: "c", Reason: "exited"})
				b.containerRuns("a")
				b.plan(planned("p", tc.first...))
				pass(time.Second)
				success = name != "recreated marker"
				b.plan(planned("p", tc.second...))
				pass(time.Second)
				expect.Equal(t, "changes", append([]string{"0s p >" + string(v1alpha1.ProbeSucceeded)}, tc.want...), b.changes)
				b.stop()
			})
		})
	}
}

func TestTasksOfMilliseconds(t *testing.T) {
	tcp := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}
	tasks, problems := worker.TasksOf([]v1alpha1.PodProbe{{
		Name: "pod", Namespace: "games", UID: "pod-uid", IP: "10.0.0.1",
		Probes: []v1alpha1.ContainerProbe{{Name: "m#p", ContainerName: "main", Probe: v1alpha1.ContainerProbeSpec{
			Probe:              corev1.Probe{ProbeHandler: tcp, PeriodSeconds: 10, TimeoutSeconds: 1},
			PeriodMilliseconds: 200, TimeoutMilliseconds: 150,
		}}},
	}})
	if len(problems) > 0 || len(tasks) != 1 {
		t.Fatalf("%d tasks and problems %v, want one task", len(tasks), problems)
	}
	if period, timeout := tasks[0].Policy.Period, tasks[0].Target.Timeout; period != 200*time.Millisecond || timeout != 150*time.Millisecond {
		t.Errorf("period %s and timeout %s, want 200ms and 150ms", period, timeout)
	}
}
