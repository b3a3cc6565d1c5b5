// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// TestEnvironmentFromLabel changes a label that an environment variable is read from, together with
// the image: the restarted container has the new value.
func TestEnvironmentFromLabel(t *testing.T) {
	t.Parallel()
	withEnvironment := func(template *corev1.PodTemplateSpec) {
		template.Labels["mode"] = "old"
		template.Spec.Containers[0].Env = []corev1.EnvVar{{
			Name:      "MODE",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['mode']"}},
		}}
		template.Spec.Containers[0].Command = []string{"sh", "-c", `echo "mode $MODE"; ` + idle}
	}
	for kind, set := range sets() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			image := s.newImage()
			switch set := set.(type) {
			case *v1alpha1.CloneSet:
				withEnvironment(&set.Spec.Template)
			case *v1beta1.StatefulSet:
				withEnvironment(&set.Spec.Template)
			}
			s.Create(set)
			before := s.get(s.settled("updated", 1)[0])
			s.change(set, func(template *corev1.PodTemplateSpec) {
				template.Labels["mode"] = "new"
				template.Spec.Containers[0].Image = image
			})
			s.settled("updated", 1, runs(image), restartedOnce(before))
			s.prints(before.Name, "mode new")
		})
	}
}

// prints waits until the container of a pod has printed a line. A container can be ready before that.
func (s *suite) prints(name, line string) {
	s.Helper()
	s.Eventually(fmt.Sprintf("pod %s prints %q", name, line), func(ctx context.Context) error {
		out, err := s.TryKubectl(ctx, "logs", name)
		if err == nil && strings.TrimSpace(out) != line {
			err = fmt.Errorf("output %q", out)
		}
		return err
	})
}

// TestFailedPodIsReplaced lets the kubelet reject a pod, whose host port another pod has. The pod is
// replaced until the port is free.
func TestFailedPodIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	port := corev1.ContainerPort{ContainerPort: 21017, HostPort: 21017}
	nodes := &corev1.NodeList{}
	cluster.Must(t, s.Client.List(t.Context(), nodes))
	holder := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "holder"}, Spec: template("holder").Spec}
	holder.Spec.NodeName = nodes.Items[0].Name
	holder.Spec.Containers[0].Ports = []corev1.ContainerPort{port}
	s.Create(holder)
	s.Eventually("the pod with the port is ready", func(context.Context) error { return ready(s.get("holder")) })
	set := newStatefulSet("rejected", 1, func(set *v1beta1.StatefulSet) {
		set.Spec.Template.Spec.NodeName = nodes.Items[0].Name
		set.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{port}
	})
	seen := map[string]bool{}
	s.Create(set)
	s.Eventually("the rejected pod is replaced", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "rejected")
		for _, pod := range pods {
			seen[string(pod.UID)] = true
		}
		if err == nil && len(seen) < 2 {
			err = fmt.Errorf("pods seen: %v", seen)
		}
		return err
	})
	cluster.Must(t, s.Client.Delete(t.Context(), holder))
	s.settled("rejected", 1, func(pod *corev1.Pod) error {
		return await.ErrorIf(pod.Status.Phase != corev1.PodRunning, "pod %s: phase %s", pod.Name, pod.Status.Phase)
	})
}
