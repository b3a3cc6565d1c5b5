// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// TestMinReadySeconds checks that a CloneSet with scaleStrategy.maxUnavailable creates the next pod
// when the previous one has been ready for minReadySeconds.
func TestMinReadySeconds(t *testing.T) {
	t.Parallel()
	const replicas, seconds = 3, 3
	s := newSuite(t)
	s.Create(newCloneSet("slow", replicas, func(set *v1alpha1.CloneSet) {
		set.Spec.MinReadySeconds = seconds
		set.Spec.ScaleStrategy.MaxUnavailable = number(1)
	}))
	s.settled("slow", replicas)
	byName, err := s.pods(t.Context(), "slow")
	cluster.Must(t, err)
	var pods []corev1.Pod
	for _, pod := range byName {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := 1; i < replicas; i++ {
		since := condition(&pods[i-1], corev1.PodReady).LastTransitionTime
		// Both times are rounded down to seconds.
		if got := pods[i].CreationTimestamp.Sub(since.Time); got < (seconds-1)*time.Second {
			t.Errorf("pod %d was created %s after the previous one became ready, want %d s", i, got, seconds)
		}
	}
}

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
	for kind, set := range sets(0) {
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

// TestQOSChangeRecreates changes resources in a way that changes the QoS class of the pod, which
// cannot change in a running pod.
func TestQOSChangeRecreates(t *testing.T) {
	t.Parallel()
	for kind, set := range sets(0) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			s.Create(set)
			before := s.get(s.settled("updated", 1)[0])
			few := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
			s.change(set, func(template *corev1.PodTemplateSpec) {
				template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: few, Limits: few}
			})
			s.settled("updated", 1, func(pod *corev1.Pod) error {
				if pod.UID == before.UID || pod.Status.QOSClass != corev1.PodQOSGuaranteed {
					return fmt.Errorf("pod %s: class %s, want a new pod of class %s", pod.Name, pod.Status.QOSClass, corev1.PodQOSGuaranteed)
				}
				return nil
			})
		})
	}
}

// TestPreparingUpdate checks that a hook holds an update in place before and after the restart.
func TestPreparingUpdate(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	image := s.newImage()
	set := newCloneSet("hooked", 1, inPlace, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Labels[holdLabel] = "true"
		set.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{holdLabel: "true"}}}
	})
	s.Create(set)
	before := s.get(s.settled("hooked", 1)[0])
	s.change(set, func(template *corev1.PodTemplateSpec) { template.Spec.Containers[0].Image = image })
	s.settled("hooked", 1, inState(pub.LifecycleStatePreparingUpdate))
	s.Never(time.Second, "the held pod is updated", func(ctx context.Context) error {
		pods, err := s.pods(ctx, "hooked")
		if pod, there := pods[before.Name]; err == nil && (!there || pod.Spec.Containers[0].Image == image) {
			err = fmt.Errorf("pods %v", pods)
		}
		return err
	})
	hold := func(value string) {
		t.Helper()
		patch(s, s.get(before.Name), func(pod *corev1.Pod) {
			delete(pod.Labels, holdLabel)
			if value != "" {
				pod.Labels[holdLabel] = value
			}
		})
	}
	hold("")
	s.settled("hooked", 1, runs(image), restartedOnce(before), inState(pub.LifecycleStateUpdated))
	hold("true")
	s.settled("hooked", 1, restartedOnce(before), inState(pub.LifecycleStateNormal))
}

// TestIdentity checks the names, host names and labels of the pods of a StatefulSet with reserved
// ordinals.
func TestIdentity(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	s.Create(newStatefulSet("db", 3, func(set *v1beta1.StatefulSet) {
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(0), intstr.FromString("2-3")}
		set.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "hostname; " + idle}
	}))
	names := s.settled("db", 3)
	if want := []string{"db-1", "db-4", "db-5"}; !slices.Equal(names, want) {
		t.Fatalf("pods %v, want %v", names, want)
	}
	for _, name := range names {
		pod := s.get(name)
		if pod.Labels["statefulset.kubernetes.io/pod-name"] != name || pod.Labels["apps.kubernetes.io/pod-index"] != strings.TrimPrefix(name, "db-") {
			t.Errorf("labels of %s: %v", name, pod.Labels)
		}
		s.prints(name, name)
	}
	old := s.get("db-4")
	cluster.Must(t, s.Client.Delete(t.Context(), old))
	s.settled("db", 3, func(pod *corev1.Pod) error {
		if pod.UID == old.UID {
			return fmt.Errorf("pod %s is not replaced", pod.Name)
		}
		return nil
	})
}

// probed makes a pod ready while it has the file /tmp/ok, which it creates itself.
func probed(set *v1beta1.StatefulSet) {
	container := &set.Spec.Template.Spec.Containers[0]
	container.Command = []string{"sh", "-c", "touch /tmp/ok; " + idle}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/tmp/ok"}}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
}

// breaks makes a pod not ready.
func (s *suite) breaks(name string) {
	s.Helper()
	s.Kubectl("exec", name, "--", "rm", "/tmp/ok")
	s.Eventually("pod "+name+" is not ready", func(context.Context) error {
		if ready(s.get(name)) == nil {
			return fmt.Errorf("pod %s is ready", name)
		}
		return nil
	})
}

func (s *suite) scaleTo(set *v1beta1.StatefulSet, replicas int32) {
	s.Helper()
	patch(s, set, func(set *v1beta1.StatefulSet) { set.Spec.Replicas = &replicas })
}

// hasPods expects a number of pods.
func (s *suite) hasPods(app string, want int) func(context.Context) error {
	return func(ctx context.Context) error {
		pods, err := s.pods(ctx, app)
		if err == nil && len(pods) != want {
			err = fmt.Errorf("%d pods, want %d", len(pods), want)
		}
		return err
	}
}

// TestOrderedScaling checks that the pods are created in order, and that scaling up and down waits
// for a pod that is not ready.
func TestOrderedScaling(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	set := newStatefulSet("ordered", 2, probed)
	s.Create(set)
	s.settled("ordered", 2)
	first, second := s.get("ordered-0"), s.get("ordered-1")
	if since := condition(first, corev1.PodReady).LastTransitionTime; second.CreationTimestamp.Before(&since) {
		t.Errorf("ordered-1 was created at %s, before ordered-0 was ready at %s", second.CreationTimestamp, since)
	}
	s.breaks("ordered-0")
	s.scaleTo(set, 3)
	s.Never(2*time.Second, "a pod is created while another is not ready", s.hasPods("ordered", 2))
	s.Kubectl("exec", "ordered-0", "--", "touch", "/tmp/ok")
	s.settled("ordered", 3)
	s.breaks("ordered-0")
	s.scaleTo(set, 1)
	s.Never(2*time.Second, "a pod is deleted while another is not ready", s.hasPods("ordered", 3))
	s.Kubectl("exec", "ordered-0", "--", "touch", "/tmp/ok")
	s.settled("ordered", 1)
}

// TestBurstScaling checks that scaling with the policy Parallel does not wait for a pod that is not
// ready.
func TestBurstScaling(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	set := newStatefulSet("burst", 1, probed, func(set *v1beta1.StatefulSet) {
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	})
	s.Create(set)
	s.settled("burst", 1)
	s.breaks("burst-0")
	s.scaleTo(set, 3)
	s.Eventually("the other pods are created", s.hasPods("burst", 3))
	s.scaleTo(set, 1)
	s.Eventually("the other pods are deleted", s.hasPods("burst", 1))
	if ready(s.get("burst-0")) == nil {
		t.Error("burst-0 is ready: the test checks nothing")
	}
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
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s: phase %s", pod.Name, pod.Status.Phase)
		}
		return nil
	})
}
