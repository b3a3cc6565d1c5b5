// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemonsets_test tests DaemonSets with a real API server. The nodes and their kubelets are simulated.
package daemonsets_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/follow"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
	"github.com/seamark-dev/seamark/test/kubelet"
)

// server is the API server that the tests share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// start runs seamark-workloads with pulls before updates, until the test ends or the function is called.
func start(t *testing.T, e *env.Env, edits ...func(*workloads.Options)) (stop func()) {
	t.Helper()
	cfg := program.Install(t, e, "config/daemonsets/rbac.yaml", "config/imagepulls/rbac.yaml", "config/policies/guards.yaml")
	awaitPulls(t, e, cfg)
	return program.Start(t, cfg, func(options *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		options.PreDownloadDaemonSets, enabled.DaemonSet.Enabled, enabled.ImagePullJob.Enabled = true, new(true), new(true)
		for _, edit := range edits {
			edit(options)
		}
	})
}

// awaitPulls waits until the API server applies the policy that permits pulls.
func awaitPulls(t *testing.T, e *env.Env, cfg *rest.Config) {
	t.Helper()
	c, w := e.ClientOf(t, cfg), env.NewWorld(t, e)
	e.GrantWorkloads(t, w.Namespace)
	w.Until("pulls are permitted", func() error {
		return c.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "pull", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: "ImagePullJob", Name: "job", UID: "uid", Controller: new(true),
			}}},
			Spec: corev1.PodSpec{
				NodeName: "none", AutomountServiceAccountToken: new(false),
				Containers: []corev1.Container{{Name: "pull", Image: "agent:1", Command: []string{"/dev/null/pull"}}},
			},
		}, client.DryRunAll)
	})
}

// world is a DaemonSet in its own namespace, with its own nodes.
type world struct {
	*env.World
	set     *v1alpha1.DaemonSet
	kubelet *kubelet.Kubelet

	mu sync.Mutex
	// broken are the nodes whose pods do not become ready.
	broken map[string]bool
}

// newWorld returns a set that is not created yet, with so many nodes: NAMESPACE-0 and so on.
func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	w := &world{World: env.NewWorld(t, server), broken: map[string]bool{}}
	w.set = &v1alpha1.DaemonSet{
		ObjectMeta: w.Meta("agent"),
		Spec: v1alpha1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"world": w.Namespace}, Containers: []corev1.Container{{Name: "main", Image: "agent:1"}},
				},
			},
		},
	}
	for i := range nodes {
		w.addNode(i)
	}
	w.kubelet = w.RunKubelets(func(pod *corev1.Pod) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.broken[pod.Spec.NodeName] && !strings.HasSuffix(pod.Spec.Containers[0].Image, ":broken")
	})
	t.Cleanup(func() { w.Clean(&v1alpha1.DaemonSet{}, &corev1.Pod{}) })
	return w
}

func (w *world) node(i int) string { return w.NodeName(fmt.Sprint(i)) }

func (w *world) addNode(i int) { w.Helper(); w.ReadyNode(fmt.Sprint(i)) }

// taint replaces the taints of a node.
func (w *world) taint(i int, taints ...corev1.Taint) {
	w.Helper()
	w.editNode(i, func(node *corev1.Node) { node.Spec.Taints = taints })
}

func (w *world) editNode(i int, change func(*corev1.Node)) {
	w.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node(i)}}
	w.Edit(node, func() { change(node) })
}

// setBroken makes the pods of a node not ready, or ready again.
func (w *world) setBroken(i int, broken bool) {
	w.mu.Lock()
	w.broken[w.node(i)] = broken
	w.mu.Unlock()
	w.kubelet.Again()
}

// create creates the set.
func (w *world) create(change func(*v1alpha1.DaemonSet)) *world {
	w.Helper()
	if change != nil {
		change(w.set)
	}
	w.Create(w.set)
	return w
}

// edit changes the set.
func (w *world) edit(change func(*v1alpha1.DaemonSet)) {
	w.Helper()
	w.Edit(w.set, func() { change(w.set) })
}

func (w *world) setImage(image string) {
	w.Helper()
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = image })
}

// pods returns the pods, by node, without those of pulls: nothing collects the pods of jobs that are deleted.
func (w *world) pods() []corev1.Pod {
	w.Helper()
	list := &corev1.PodList{}
	w.List(list)
	list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return isPull(&pod) })
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Spec.NodeName+a.Name, b.Spec.NodeName+b.Name) })
	return list.Items
}

func isPull(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.ImagePullJobKey] != "" }

// on returns the pods of a node.
func (w *world) on(i int) []corev1.Pod {
	w.Helper()
	return slices.DeleteFunc(w.pods(), func(pod corev1.Pod) bool { return pod.Spec.NodeName != w.node(i) })
}

// until waits until the check succeeds. It reads the set before.
func (w *world) until(what string, check func() error) {
	w.Helper()
	w.Shows(w.set, what, check)
}

// images waits until the nodes from 0 on have one ready pod each, with these images. An empty image means no pod.
func (w *world) images(images ...string) {
	w.Helper()
	want := map[string]string{}
	for i, image := range images {
		if image != "" {
			want[w.node(i)] = image
		}
	}
	w.until(fmt.Sprintf("pods have images %v", images), func() error {
		got := map[string]string{}
		for _, pod := range w.pods() {
			if !planning.Active(&pod) || !planning.Ready(&pod) || got[pod.Spec.NodeName] != "" {
				return fmt.Errorf("pod %s on %s: image %s, ready %t", pod.Name, pod.Spec.NodeName, pod.Spec.Containers[0].Image, planning.Ready(&pod))
			}
			got[pod.Spec.NodeName] = pod.Spec.Containers[0].Image
		}
		return await.ErrorIf(!maps.Equal(got, want), "images %v, want %v", got, want)
	})
}

// has waits for a condition.
func (w *world) has(kind appsv1.DaemonSetConditionType, status corev1.ConditionStatus, reason string) (found appsv1.DaemonSetCondition) {
	w.Helper()
	w.until(fmt.Sprintf("%s is %s because of %s", kind, status, reason), func() error {
		i := slices.IndexFunc(w.set.Status.Conditions, func(c appsv1.DaemonSetCondition) bool { return c.Type == kind })
		if i < 0 || w.set.Status.Conditions[i].Status != status || w.set.Status.Conditions[i].Reason != reason || w.set.Status.ObservedGeneration != w.set.Generation {
			return fmt.Errorf("conditions %+v", w.set.Status.Conditions)
		}
		found = w.set.Status.Conditions[i]
		return nil
	})
	return found
}

// watch calls check with the pods at each event, until the returned function is called, which reports the first error.
func (w *world) watch(check func(pods map[string]*corev1.Pod) error) (stop func()) {
	w.Helper()
	pods := map[string]*corev1.Pod{}
	var errs []error
	var listed atomic.Bool // The pods of the list come one by one.
	ctx, cancel := context.WithCancel(w.Context())
	wait, err := follow.Objects(ctx, w.Client, &corev1.PodList{}, func(event watch.Event) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || isPull(pod) {
			return
		}
		if pods[pod.Name] = pod; event.Type == watch.Deleted {
			delete(pods, pod.Name)
		}
		if listed.Load() {
			errs = append(errs, check(pods))
		}
	}, client.InNamespace(w.Namespace))
	expect.NoError(w, err)
	listed.Store(true)
	return func() {
		w.Helper()
		cancel()
		expect.NoError(w, errors.Join(append(errs, wait())...))
	}
}

// readyNodes returns the number of nodes with a ready pod that is not being deleted.
func readyNodes(pods map[string]*corev1.Pod) int {
	nodes := map[string]bool{}
	for _, pod := range pods {
		if planning.Active(pod) && planning.Ready(pod) {
			nodes[pod.Spec.NodeName] = true
		}
	}
	return len(nodes)
}

func rolling(set *v1alpha1.DaemonSet, change func(*v1alpha1.RollingUpdateDaemonSet)) {
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		set.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdateDaemonSet{}
	}
	change(set.Spec.UpdateStrategy.RollingUpdate)
}

func number(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
