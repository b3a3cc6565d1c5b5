// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// logAgent returns the set of examples/log-agent for the pods of the test.
func (s *suite) logAgent() *v1alpha1.SidecarSet {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.Root, "examples", "log-agent", "sidecarset.yaml"))
	cluster.Must(s, err)
	set := &v1alpha1.SidecarSet{}
	cluster.Must(s, yaml.UnmarshalStrict(text, set))
	set.Name, set.Spec.Namespace = s.Namespace, s.Namespace
	s.Cleanup(func() { _ = s.Client.Delete(context.Background(), set) })
	return set
}

// inject creates the set and waits until API servers use its entry: a pod that exists only as a dry run has its
// containers.
func (s *suite) inject(set *v1alpha1.SidecarSet) {
	s.Helper()
	s.Create(set)
	s.Eventually("the set is injected", func(ctx context.Context) error {
		pod := template("dry-run")
		pod.Labels["logs"] = "collect"
		created := &corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
		created.Namespace, created.Name = s.Namespace, "dry-run"
		if err := s.Client.Create(ctx, created, ctrl.DryRunAll); err != nil {
			return err
		}
		return await.ErrorIf(len(created.Spec.InitContainers) == 0, "no container is injected")
	})
}

// counts waits for numbers in the status of the set.
func (s *suite) counts(set *v1alpha1.SidecarSet, matched, updated, updatedReady int32) {
	s.Helper()
	s.Eventually(fmt.Sprintf("%d pods match, %d are updated, %d of them ready", matched, updated, updatedReady), func(ctx context.Context) error {
		if err := s.Client.Get(ctx, ctrl.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if got := set.Status; got.MatchedPods != matched || got.UpdatedPods != updated || got.UpdatedReadyPods != updatedReady {
			return fmt.Errorf("%d, %d, %d", got.MatchedPods, got.UpdatedPods, got.UpdatedReadyPods)
		}
		return nil
	})
}

// TestLogAgent rolls out the native sidecar of examples/log-agent to a part of the pods, then to all. No other
// container restarts, and a Job with it completes.
func TestLogAgent(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	const next = "docker.io/library/busybox:log-agent-v2"
	s.tag(cluster.BusyboxImage, next)
	set := s.logAgent()
	s.inject(set)
	s.Kubectl("apply", "-f", filepath.Join(s.Root, "examples", "log-agent", "games.yaml"))
	s.settled("games", 10)
	s.Eventually("the Job completes", func(ctx context.Context) error {
		job := &batchv1.Job{}
		if err := s.Client.Get(ctx, s.Key("season"), job); err != nil || job.Status.Succeeded != 1 {
			return fmt.Errorf("%d pods have succeeded, error %w", job.Status.Succeeded, err)
		}
		return nil
	})
	s.Eventually("the agent prints the log", func(ctx context.Context) error {
		out, err := s.TryKubectl(ctx, "logs", "deployment/games", "-c", "log-agent", "--tail=1")
		if err == nil && !strings.Contains(out, "has ended") {
			err = fmt.Errorf("it prints %q", out)
		}
		return err
	})
	s.counts(set, 10, 10, 10)

	version := "v1"
	patch(s, set, func(set *v1alpha1.SidecarSet) {
		set.Labels[v1alpha1.SidecarSetCustomVersionLabel] = "v2"
		set.Spec.InitContainers[0].Image = next
		set.Spec.UpdateStrategy.Partition = new(intstr.FromString("90%"))
		set.Spec.InjectionStrategy.Revision = &v1alpha1.SidecarSetInjectRevision{
			CustomVersion: &version, Policy: v1alpha1.PartialSidecarSetInjectRevisionPolicy,
		}
	})
	s.counts(set, 10, 1, 1)
	patch(s, set, func(set *v1alpha1.SidecarSet) {
		set.Spec.UpdateStrategy.Partition, set.Spec.InjectionStrategy.Revision = nil, nil
	})
	s.counts(set, 10, 10, 10)
	pods, err := s.pods(t.Context(), "games")
	cluster.Must(s, err)
	for name, pod := range pods {
		server, agent := pod.Status.ContainerStatuses[0], pod.Status.InitContainerStatuses[0]
		if server.RestartCount != 0 || agent.RestartCount != 1 || pod.Spec.InitContainers[0].Image != next {
			t.Errorf(
				"pod %s: the server restarted %d times, the agent %d times, with image %s", name, server.RestartCount, agent.RestartCount,
				pod.Spec.InitContainers[0].Image,
			)
		}
	}
}

// TestWithoutInjectors removes all injectors: pods that no set selects start, among them the injectors, and those
// that a set selects start when they are back.
func TestWithoutInjectors(t *testing.T) {
	s := newSuite(t)
	required, optional := s.logAgent(), s.logAgent()
	optional.Name += "-optional"
	optional.Annotations = map[string]string{v1alpha1.InjectionFailurePolicyKey: "Ignore"}
	optional.Spec.Selector.MatchLabels = map[string]string{"app": "optional"}
	optional.Spec.InitContainers[0].Name = "optional"
	s.inject(required)
	s.Create(optional)
	s.Eventually("the second set is injected", func(ctx context.Context) error {
		cluster.Must(s, s.Client.Get(ctx, ctrl.ObjectKeyFromObject(optional), optional))
		return await.ErrorIf(!meta.IsStatusConditionTrue(optional.Status.Conditions, v1alpha1.SidecarSetInjecting), "%+v", optional.Status.Conditions)
	})
	injectors := &appsv1.Deployment{}
	key := ctrl.ObjectKey{Namespace: cluster.SystemNamespace, Name: "seamark-injector"}
	scale := func(replicas int32) {
		cluster.Must(s, s.Client.Get(s.Context(), key, injectors))
		base := injectors.DeepCopy()
		injectors.Spec.Replicas = &replicas
		cluster.Must(s, s.Client.Patch(s.Context(), injectors, ctrl.MergeFrom(base)))
	}
	t.Cleanup(func() {
		_, _ = s.TryKubectl(context.Background(), "-n", cluster.SystemNamespace, "scale", "deployment/seamark-injector", "--replicas=2")
	})
	scale(0)
	s.Eventually("no injector exists", func(ctx context.Context) error {
		list := &corev1.PodList{}
		err := s.Client.List(ctx, list, ctrl.InNamespace(cluster.SystemNamespace), ctrl.MatchingLabels{"app.kubernetes.io/component": "injector"})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d do", len(list.Items))
		}
		return err
	})
	deployment := func(app string, edit func(*corev1.PodTemplateSpec)) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: template(app),
		}}
		edit(&d.Spec.Template)
		s.Create(d)
	}
	deployment("other", func(*corev1.PodTemplateSpec) {})
	deployment("optional", func(*corev1.PodTemplateSpec) {})
	deployment("required", func(t *corev1.PodTemplateSpec) { t.Labels["logs"] = "collect" })
	s.settled("other", 2)
	s.settled("optional", 2)
	s.Eventually("pods that run without the set are counted", func(ctx context.Context) error {
		cluster.Must(s, s.Client.Get(ctx, ctrl.ObjectKeyFromObject(optional), optional))
		return await.ErrorIf(optional.Status.UninjectedPods != 2, "%d", optional.Status.UninjectedPods)
	})
	if pods, err := s.pods(t.Context(), "required"); err != nil || len(pods) > 0 {
		t.Errorf("%d pods of a set exist without an injector, error %v", len(pods), err)
	}
	scale(2)
	s.settled("required", 2, func(pod *corev1.Pod) error {
		return await.ErrorIf(len(pod.Spec.InitContainers) != 1, "pod %s does not have the agent", pod.Name)
	})
}
