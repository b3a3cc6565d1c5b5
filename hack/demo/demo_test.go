// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/test/expect"
)

// newPod returns a ready pod whose container runs an image with the tag.
func newPod(name, idle, tag string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "game-server"}}}
	if idle != "" {
		pod.Labels[idleLabel] = idle
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: "docker.io/seamark/example-database:" + tag}}
	return pod
}

func starting(pod *corev1.Pod) *corev1.Pod {
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	return pod
}

func terminating(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = ptr.To(metav1.Now())
	return pod
}

func TestScalable(t *testing.T) {
	for name, test := range map[string]struct {
		// idle are the labels of the servers.
		idle string
		// last changes the last server.
		last func(*corev1.Pod) *corev1.Pod
		want bool
	}{
		"three idle":        {"false false true true true", nil, true},
		"two idle":          {"false false false true true", nil, false},
		"four idle":         {"false true true true true", nil, false},
		"one is not seen":   {"false true true true", nil, false},
		"one is not marked": {"false true true true ?", func(p *corev1.Pod) *corev1.Pod { p.Labels = nil; return p }, false},
		"one is not ready":  {"false false true true true", starting, false},
	} {
		t.Run(name, func(t *testing.T) {
			pods := map[string]*corev1.Pod{}
			for i, idle := range strings.Fields(test.idle) {
				name := fmt.Sprint("server-", i)
				pods[name] = newPod(name, idle, "")
				if i == size-1 && test.last != nil {
					test.last(pods[name])
				}
			}
			if got := scalable(pods); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestShrink scales five servers of a fake cluster down, of which three are idle.
func TestShrink(t *testing.T) {
	for name, test := range map[string]struct {
		// changes are the labels that change between the decision to scale down and the choice of the pods.
		changes map[string]string
		// removed are the labels of the removed servers when their termination begins.
		removed map[string]string
		want    string
		refusal string
	}{
		"idle servers": {
			nil, map[string]string{"a": "true", "b": "true"}, "# a was removed: idle\n# b was removed: idle\n# Of 5 servers, 2 were removed", "",
		},
		"a match ended": {
			map[string]string{"p": "true"}, map[string]string{"a": "true", "p": "true"}, "# p was removed: its match had just ended\n", "",
		},
		"a match began": {
			map[string]string{"b": "false"}, map[string]string{"a": "true", "b": "false"}, "# b was removed: a match had begun since the scale-down\n", "",
		},
		"a match was interrupted": {nil, map[string]string{"a": "true", "q": "false"}, "", "server q was removed: during a match"},
	} {
		t.Run(name, func(t *testing.T) {
			events := watch.NewFakeWithChanSize(20, false)
			for name, idle := range map[string]string{"a": "true", "b": "true", "c": "true", "p": "false", "q": "false"} {
				events.Add(newPod(name, idle, ""))
			}
			events.Add(terminating(newPod("old", "false", "")))
			cluster := &fake.Clientset{}
			cluster.AddWatchReactor("pods", clienttesting.DefaultWatchReactor(events, nil))
			var out strings.Builder
			s := &servers{pods: cluster.CoreV1().Pods("default"), shell: &shell{out: &out, run: func(_ context.Context, line string, _ io.Writer) error {
				if !strings.Contains(line, "scale") {
					return nil
				}
				for name, idle := range test.changes {
					events.Modify(newPod(name, idle, ""))
				}
				for name, idle := range test.removed {
					events.Modify(terminating(newPod(name, idle, "")))
					// A server is idle once it is told to stop.
					events.Modify(terminating(newPod(name, "true", "")))
					events.Delete(terminating(newPod(name, "true", "")))
				}
				events.Delete(terminating(newPod("old", "false", "")))
				return nil
			}}}
			err := s.shrink(t.Context())
			if (err != nil) != (test.refusal != "") || err != nil && !strings.Contains(err.Error(), test.refusal) {
				t.Fatalf("error %v, want one with %q", err, test.refusal)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("output %q, want %q in it", out.String(), test.want)
			}
		})
	}
}

func TestAlone(t *testing.T) {
	server := newPod("server", "false", "")
	server.UID = "match"
	for name, test := range map[string]struct {
		others string
		want   bool
	}{
		"all replaced":        {"new new new new", true},
		"one more":            {"new new new new starting", true},
		"one is not replaced": {"new new new new old", false},
		"one is not ready":    {"new new new starting", false},
	} {
		pods := []corev1.Pod{*server}
		for _, name := range strings.Fields(test.others) {
			pod := newPod(name, "true", "")
			if name == "starting" {
				starting(pod)
			}
			pods = append(pods, *pod)
		}
		m := &match{server: server}
		if got := m.alone(pods, func(pod *corev1.Pod) bool { return pod.Name == "old" }); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
		if m.alone(pods[1:], func(*corev1.Pod) bool { return false }) {
			t.Errorf("%s, without the server: got true", name)
		}
	}
}

func TestDescribe(t *testing.T) {
	pods := []corev1.Pod{
		*newPod("db-0", "", "v1"), *newPod("db-1", "", "v2"), *starting(newPod("db-2", "", "v2")), *terminating(newPod("db-3", "", "v2")),
	}
	for holder, primary := range map[string]string{"db-1": "is db-1", "": "is released"} {
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: ptr.To[int32](2)}}
		want := database{switches: 2, updated: 1, states: map[string]string{
			"primary": primary, "db-0": "is ready, v1", "db-1": "is ready, v2", "db-2": "is not ready", "db-3": "is deleted",
		}}
		got := describe(pods, lease)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(database{})); diff != "" {
			t.Errorf("holder %q (-want +got):\n%s", holder, diff)
		}
		changed := changes(map[string]string{"primary": primary, "db-1": "is ready, v1", "db-4": "is ready, v1"}, got.states)
		expect.Equal(t, "changes", []string{"db-0 is ready, v1", "db-1 is ready, v2", "db-2 is not ready", "db-3 is deleted"}, changed)
	}
}

func TestConclusion(t *testing.T) {
	for ours, refusal := range map[int32]string{0: "switched 0 times", 1: "", 2: "switched 2 times"} {
		var out strings.Builder
		err := conclude(&out, ours, 3)
		if refusal != "" {
			if err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("error %v, want one with %q", err, refusal)
			}
		} else if err != nil || !strings.Contains(out.String(), fmt.Sprintf("switched %d times", 3)) {
			t.Errorf("error %v, output %q", err, out.String())
		}
	}
}
