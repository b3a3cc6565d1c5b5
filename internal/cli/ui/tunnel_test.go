// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/test/builders"
)

// manager returns a ready pod of a manager that serves the page at the port, or does not for 0.
func manager(name string, port int32, changes ...func(*corev1.Pod)) corev1.Pod {
	ports := []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}}
	if port != 0 {
		ports = append(ports, corev1.ContainerPort{Name: portName, ContainerPort: port})
	}
	pod := builders.Pod("seamark", name).Container("manager", ports...).Build()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Spec.ServiceAccountName = managerName
	for _, change := range changes {
		change(pod)
	}
	return *pod
}

func TestChoose(t *testing.T) {
	notReady := func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }
	ending := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }
	other := func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "default" }
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
		err  string
	}{
		"leader":                             {pods: []corev1.Pod{manager("a", 1), manager("leader", 2), manager("b", 3)}, want: "leader"},
		"leader is not ready":                {pods: []corev1.Pod{manager("leader", 2, notReady), manager("a", 1)}, want: "a"},
		"leader ends":                        {pods: []corev1.Pod{manager("leader", 2, ending), manager("a", 1)}, want: "a"},
		"leader does not serve the page":     {pods: []corev1.Pod{manager("leader", 0), manager("a", 1)}, want: "a"},
		"nobody serves the page":             {pods: []corev1.Pod{manager("leader", 0), manager("a", 0)}, err: "does not serve the page (ui.enabled"},
		"other service account":              {pods: []corev1.Pod{manager("leader", 1, other)}, err: "no manager is ready in namespace seamark"},
		"other service account, and manager": {pods: []corev1.Pod{manager("leader", 1, other), manager("a", 1)}, want: "a"},
		"none":                               {err: "--seamark-namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(test.pods, "leader", "seamark")
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("choose() = %v, %v, want error %q", got, err, test.err)
				}
				return
			}
			if want := (types.NamespacedName{Namespace: "seamark", Name: test.want}); err != nil || got.pod != want || got.port == 0 {
				t.Errorf("choose() = %v, %v, want %v", got, err, want)
			}
		})
	}
}

// A port-forward to the managers needs rights that reach the loopback address of every node.
func TestTheAPIServerIsTheDefault(t *testing.T) {
	if mode := New(genericiooptions.IOStreams{}, "seamark", "v1").Flag("mode").DefValue; mode != modeDirect {
		t.Errorf("--mode is %s by default, want %s", mode, modeDirect)
	}
}
