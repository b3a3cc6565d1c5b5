// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/follow"
)

// idle is a main process that does nothing and ends on SIGTERM.
const idle = `trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done`

// suite is what one test uses of the cluster.
type suite struct {
	*cluster.Cluster
	// tags are the names of images that the test has added to the nodes.
	tags []string
}

// newSuite connects to the cluster and creates a namespace, which is deleted when the test ends.
func newSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{Cluster: cluster.Connect(t, "../../..")}
	s.CreateNamespace("workloads-", func(ctx context.Context) {
		if t.Failed() {
			s.Dump(ctx, "get pods -o wide --show-labels", "get clonesets,statefulsets.apps.kruise.io,leases,podprobemarkers -o yaml",
				"get pods -o yaml", "get events --sort-by=.lastTimestamp", "get pods -n "+cluster.SystemNamespace+" -o wide",
				"logs -n "+cluster.SystemNamespace+" -l app.kubernetes.io/component=workloads --tail=60 --prefix")
		}
		s.untag(ctx)
	})
	return s
}

// stream calls see for every object of the list's kind in the test's namespace, and for every
// change, until the test ends. It fails the test if it misses a change.
func (s *suite) stream(list ctrl.ObjectList, see func(o ctrl.Object, deleted bool)) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	wait, err := follow.Objects(ctx, s.Client, list, func(event watch.Event) {
		if o, ok := event.Object.(ctrl.Object); ok {
			see(o, event.Type == watch.Deleted)
		}
	}, ctrl.InNamespace(s.Namespace))
	if err != nil {
		cancel()
		s.Fatalf("follow %T: %v", list, err)
	}
	s.Cleanup(func() { cancel(); expect.NoErrorf(s, wait(), "follow %T", list) })
}

// patch changes an object that exists. It does not depend on the version of the argument.
func patch[T ctrl.Object](s *suite, o T, change func(T)) {
	s.Helper()
	cluster.Must(s, s.Client.Get(s.Context(), ctrl.ObjectKeyFromObject(o), o))
	base := o.DeepCopyObject().(ctrl.Object)
	change(o)
	cluster.Must(s, s.Client.Patch(s.Context(), o, ctrl.MergeFrom(base)))
}

// pods returns the pods of an application by name, including those that are terminating.
func (s *suite) pods(ctx context.Context, app string) (map[string]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := s.Client.List(ctx, list, ctrl.InNamespace(s.Namespace), ctrl.MatchingLabels{"app": app}); err != nil {
		return nil, err
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods, nil
}

// settled waits until the application has as many pods, all ready and none terminating, and
// returns their names in order.
func (s *suite) settled(app string, replicas int, wants ...func(*corev1.Pod) error) []string {
	s.Helper()
	var names []string
	wait := await.Poll{Interval: 100 * time.Millisecond, Timeout: cluster.Timeout + time.Duration(replicas)*3*time.Second}
	wait.Success(s, fmt.Sprintf("%s has %d ready pods", app, replicas), func(ctx context.Context) error {
		pods, err := s.pods(ctx, app)
		if err != nil {
			return err
		}
		if len(pods) != replicas {
			return fmt.Errorf("%d pods: %v", len(pods), slices.Sorted(maps.Keys(pods)))
		}
		for _, pod := range pods {
			if err := ready(&pod); err != nil {
				return err
			}
			for _, want := range wants {
				if err := want(&pod); err != nil {
					return err
				}
			}
		}
		names = slices.Sorted(maps.Keys(pods))
		return nil
	})
	return names
}

// ready expects that the pod is ready and not terminating.
func ready(pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return fmt.Errorf("pod %s is terminating", pod.Name)
	}
	c := condition(pod, corev1.PodReady)
	return await.ErrorIf(c == nil || c.Status != corev1.ConditionTrue, "pod %s is not ready: %+v", pod.Name, pod.Status.Conditions)
}

func condition(pod *corev1.Pod, name corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == name {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func inState(state pub.LifecycleStateType) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		got := pod.Labels[pub.LifecycleStateKey]
		return await.ErrorIf(got != string(state), "pod %s: state %q, want %q", pod.Name, got, state)
	}
}

// runs expects that the first container runs an image.
func runs(image string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if got := pod.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("pod %s: image %s, want %s", pod.Name, got, image)
		}
		if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
			return fmt.Errorf("pod %s: the container does not run", pod.Name)
		}
		return nil
	}
}

// template returns the template of pods with one busybox container that does nothing.
func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{
				Name: "main", Image: cluster.BusyboxImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"sh", "-c", idle},
			}},
		},
	}
}

// newCloneSet returns a CloneSet with pods that do nothing.
func newCloneSet(name string, replicas int32, changes ...func(*v1alpha1.CloneSet)) *v1alpha1.CloneSet {
	set := &v1alpha1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CloneSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name),
		},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

// newStatefulSet returns a StatefulSet with pods that do nothing.
func newStatefulSet(name string, replicas int32, changes ...func(*v1beta1.StatefulSet)) *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: name,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name),
		},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

// inPlace sets that the pods of a CloneSet are updated in place.
func inPlace(set *v1alpha1.CloneSet) {
	set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
	set.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromString("100%"))
}

// statefulInPlace sets that the pods of a StatefulSet are updated in place.
func statefulInPlace(set *v1beta1.StatefulSet) {
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType,
	}
}

// tag gives an image of every node another name until the test ends. The kubelet delays the restart
// of a container with an image that the same pod has used before.
func (s *suite) tag(image, name string) {
	s.Helper()
	cluster.Must(s, s.images(s.Context(), "tag", "--force", image, name))
	s.tags = append(s.tags, name)
}

// untag removes the names that the test has added. Containers that run are not affected.
func (s *suite) untag(ctx context.Context) {
	s.Helper()
	if len(s.tags) == 0 {
		return
	}
	if err := s.images(ctx, append([]string{"remove"}, s.tags...)...); err != nil {
		s.Errorf("remove images: %v", err)
	}
}

// images runs a command of ctr that changes the images of every node.
func (s *suite) images(ctx context.Context, args ...string) error {
	sockets, err := filepath.Glob(filepath.Join(s.Dir, "nodes", "*", "containerd.sock"))
	if err != nil {
		return fmt.Errorf("find nodes: %w", err)
	}
	if len(sockets) == 0 {
		return errors.New("the cluster has no nodes")
	}
	for _, socket := range sockets {
		command := append([]string{"--address", socket, "--namespace", "k8s.io", "images"}, args...)
		if out, err := s.Run(ctx, filepath.Join(s.Dir, "bin", "ctr"), command...); err != nil {
			return fmt.Errorf("ctr %s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	return nil
}
