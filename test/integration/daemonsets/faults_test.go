// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonsets_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/openkruise"
)

// testUnreachable updates although a node is unreachable if the set exempts such nodes.
func testUnreachable(t *testing.T) {
	w := newWorld(t, 3).create(nil)
	w.images("agent:1", "agent:1", "agent:1")
	w.setBroken(2, true)
	w.until("the pod is not ready", func() error {
		pods := w.on(2)
		return await.ErrorIf(planning.Ready(&pods[0]), "it is")
	})
	w.taint(2, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	w.setImage("agent:2")
	// The pod that was not ready is replaced, and blocks the others at once.
	w.until("the pod that was not ready is replaced", func() error {
		pods := w.on(2)
		return await.ErrorIf(len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:2" || planning.Ready(&pods[0]), "not yet")
	})
	for i := range 2 {
		if pods := w.on(i); pods[0].Spec.Containers[0].Image != "agent:1" {
			t.Error("a node is updated although another one is unavailable")
		}
	}
	w.edit(func(set *v1alpha1.DaemonSet) {
		set.Annotations = map[string]string{v1alpha1.ExemptUnreachableNodesKey: "true"}
	})
	w.until("the other nodes are updated", func() error {
		for i := range 2 {
			if pods := w.on(i); len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:2" {
				return errors.New("not yet")
			}
		}
		return nil
	})
}

// testFailedPods replaces failed pods, the second one of a node later.
func testFailedPods(t *testing.T) {
	w := newWorld(t, 1).create(nil)
	w.images("agent:1")
	// No failed pod is deleted before the first one fails.
	start := time.Now()
	var replaced []time.Duration
	for range 3 {
		pod := w.on(0)[0]
		pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
		w.UpdateStatus(&pod)
		w.until("the pod is replaced", func() error {
			pods := w.on(0)
			return await.ErrorIf(len(pods) != 1 || pods[0].UID == pod.UID || !planning.Ready(&pods[0]), "not yet")
		})
		replaced = append(replaced, time.Since(start))
	}
	if replaced[1] < time.Second || replaced[2] < 3*time.Second {
		t.Errorf("pods were replaced after %v, want the second one after 1 s, and the third one 2 s later", replaced)
	}
}

// testRefusals shows in conditions why pods are not created.
func testRefusals(t *testing.T) {
	w := newWorld(t, 1)
	quota := w.Quota("none", corev1.ResourcePods, "0")
	w.create(nil)
	if c := w.has(v1alpha1.DaemonSetFailedCreate, corev1.ConditionTrue, "WriteFailed"); !strings.Contains(c.Message, "exceeded quota: none") {
		t.Error(c.Message)
	}
	w.Delete(quota)
	w.images("agent:1")
	w.has(v1alpha1.DaemonSetFailedCreate, corev1.ConditionFalse, "Recovered")
	affinity := func(operator corev1.NodeSelectorOperator) {
		w.edit(func(set *v1alpha1.DaemonSet) {
			set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "world", Operator: operator}},
				}}},
			}}
		})
	}
	affinity("Likes")
	w.until("the condition names the field", func() error {
		for _, c := range w.set.Status.Conditions {
			if c.Type == v1alpha1.DaemonSetFailedCreate && c.Reason == "PlanFailed" && strings.Contains(c.Message,
				`spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator`) {
				return nil
			}
		}
		return fmt.Errorf("%+v", w.set.Status.Conditions)
	})
	affinity(corev1.NodeSelectorOpExists)
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionTrue, "Updated")
}

// testAdoption adopts a pod that the selector matches, releases one that it no longer matches, and deletes a second pod
// of a node.
func testAdoption(t *testing.T) {
	w := newWorld(t, 1)
	orphan := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "orphan", Labels: map[string]string{"app": "agent"}},
		Spec:       *w.set.Spec.Template.Spec.DeepCopy(),
	}
	orphan.Spec.NodeName = w.node(0)
	w.Create(orphan)
	w.create(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteDaemonSetStrategyType })
	w.until("one pod remains", func() error {
		pods := w.on(0)
		return await.ErrorIf(len(pods) != 1 || metav1.GetControllerOf(&pods[0]) == nil, "%d pods", len(pods))
	})
	pod := w.on(0)[0]
	w.Edit(&pod, func() { pod.Labels["app"] = "other" })
	w.until("the pod is released and replaced", func() error {
		pods := w.on(0)
		return await.ErrorIf(len(pods) != 2 || (metav1.GetControllerOf(&pods[0]) == nil) == (metav1.GetControllerOf(&pods[1]) == nil), "%d pods", len(pods))
	})
}

// testDrain evicts the pod of a cordoned node, as kubectl drain does: the node gets another one at once. A selector of pods
// leaves out the pods of DaemonSets.
func testDrain(t *testing.T) {
	w := newWorld(t, 2).create(func(*v1alpha1.DaemonSet) {})
	w.images("agent:1", "agent:1")
	w.editNode(0, func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	})
	pod := w.on(0)[0]
	others, err := labels.Parse("seamark.dev/workload!=DaemonSet")
	expect.NoError(t, err)
	if others.Matches(labels.Set(pod.Labels)) {
		t.Errorf("the selector %s matches the labels %v", others, pod.Labels)
	}
	expect.NoError(
		t, w.Client.SubResource("eviction").Create(
			t.Context(), &pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
		),
	)
	w.until("the cordoned node has another pod", func() error {
		found := w.on(0)
		return await.ErrorIf(len(found) != 1 || found[0].UID == pod.UID || found[0].DeletionTimestamp != nil, "%d pods", len(found))
	})
}

// testPreDownload pulls the images of an update that is paused, on the nodes that it reaches, and then updates.
func testPreDownload(t *testing.T) {
	w := newWorld(t, 3).create(func(set *v1alpha1.DaemonSet) {
		set.Annotations = map[string]string{v1alpha1.PreDownloadParallelismKey: "100%"}
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Paused, r.Partition = new(true), number(1) })
	})
	w.images("agent:1", "agent:1", "agent:1")
	jobs := func(want int, check func(*v1alpha1.ImagePullJob) error) {
		t.Helper()
		w.until(fmt.Sprintf("%d jobs exist", want), func() error {
			list := &v1alpha1.ImagePullJobList{}
			w.List(list)
			if len(list.Items) != want {
				return fmt.Errorf("%d jobs", len(list.Items))
			}
			var errs []error
			for i := range list.Items {
				errs = append(errs, check(&list.Items[i]))
			}
			return errors.Join(errs...)
		})
	}
	pulledOn := func(n int32) func(*v1alpha1.ImagePullJob) error {
		return func(job *v1alpha1.ImagePullJob) error {
			return await.ErrorIf(job.Spec.Image != "agent:2" || job.Status.Succeeded != n || job.Status.CompletionTime == nil, "job %+v", job.Status)
		}
	}
	w.setImage("agent:2")
	jobs(1, pulledOn(2))
	w.has("PreDownloading", corev1.ConditionFalse, "Pulled")
	w.images("agent:1", "agent:1", "agent:1")
	// More nodes: the job is created again.
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = number(0) })
	jobs(1, pulledOn(3))
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = nil })
	w.images("agent:2", "agent:2", "agent:2")
	jobs(0, nil)
}

// TestTakeOver starts the program with sets, pods and revisions that OpenKruise has stored, and again with its own: it
// writes no pod and no revision. Then it updates, and its revisions have what OpenKruise compares.
func TestTakeOver(t *testing.T) {
	w := newWorld(t, 2)
	// OpenKruise 1.9 writes another version than 1.8.
	owner := func(version string) string {
		return `"apiVersion":"apps.kruise.io/` + version + `","blockOwnerDeletion":true,"controller":true,"kind":"DaemonSet","name":"rolling"`
	}
	sets := openkruise.Restore(t, w.Client, w.Namespace, "DaemonSet", owner("v1alpha1"), owner("v1beta1"), `"test"`, `"world"`)
	each := func(do func()) {
		for _, set := range sets {
			w.set.Name = set.GetName()
			do()
		}
	}
	each(func() {
		w.until("the kubelets have reported", func() error {
			for _, pod := range w.pods() {
				if len(pod.Status.ContainerStatuses) == 0 {
					return fmt.Errorf("pod %s has no containers", pod.Name)
				}
			}
			return nil
		})
	})
	written := func() map[string]string {
		return openkruise.Versions(
			t, w.Client, w.Namespace, corev1.SchemeGroupVersion.WithKind("Pod"), appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
		)
	}
	before := written()
	scheduled := func(n int32) func() {
		return func() {
			w.until("the set is processed", func() error {
				s := w.set.Status
				return await.ErrorIf(len(s.Conditions) == 0 || s.CurrentNumberScheduled != n, "%s: %+v", w.set.Name, s)
			})
		}
	}
	// A pull would be recorded in a label of the revision.
	withoutPulls := func(o *workloads.Options) { o.PreDownloadDaemonSets = false }
	stop := start(t, server, withoutPulls)
	each(scheduled(2))
	stop()
	expect.Equal(t, "objects written by the take-over", before, written())
	for _, set := range sets {
		expect.Success(t, openkruise.Changed(t, w.Client, set))
	}
	revision := func(hash string) *appsv1.ControllerRevision {
		found := &appsv1.ControllerRevision{}
		expect.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: w.set.Name + "-" + hash}, found))
		return found
	}
	stop = start(t, server, withoutPulls)
	hashes := map[string]string{}
	each(func() {
		w.setImage("agent:3")
		hashes[w.set.Name] = w.set.Status.DaemonSetHash
	})
	each(func() {
		switch w.set.Name {
		case "on-delete":
			w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionFalse, "OnDelete")
		case "partition":
			w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionFalse, "Partition")
		case "hook":
			// The hook holds the pod that the partition permits, which has not been available for a minute after a while.
			w.until("the update waits for the hook", func() error {
				for _, c := range w.set.Status.Conditions {
					if c.Type == v1alpha1.DaemonSetProgressing && (c.Reason == "Updating" || c.Reason == "BlockedByUnavailable") &&
						w.set.Status.ObservedGeneration == w.set.Generation {
						return nil
					}
				}
				return fmt.Errorf("conditions %+v", w.set.Status.Conditions)
			})
		default:
			w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionTrue, "Updated")
		}
		// OpenKruise finds the revision by its data, and the pods by the label of the revision.
		want := strings.ReplaceAll(string(revision(hashes[w.set.Name]).Data.Raw), "agent:2", "agent:3")
		current := revision(w.set.Status.DaemonSetHash)
		if got := string(current.Data.Raw); got != want || current.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != w.set.Status.DaemonSetHash {
			t.Errorf("revision %s with labels %v has the data\n%s\nwant\n%s", current.Name, current.Labels, got, want)
		}
	})
	stop()
	images := map[string]string{}
	for _, pod := range w.pods() {
		name := pod.Labels["app"]
		images[name] = strings.Trim(images[name]+" "+pod.Spec.Containers[0].Image, " ")
	}
	if diff := cmp.Diff(map[string]string{
		"generation": "agent:1 agent:1", "hook": "agent:1 agent:1", "on-delete": "agent:2 agent:1", "partition": "agent:1 agent:3",
		"rich": "agent:3 agent:3", "rolling": "agent:3 agent:3", "surge": "agent:3 agent:3",
	}, images); diff != "" {
		t.Errorf("images of the nodes (-want +got):\n%s", diff)
	}
	before = written()
	stop = start(t, server, withoutPulls)
	// A change of another node shows that the program has planned.
	w.addNode(2)
	each(scheduled(3))
	stop()
	after := written()
	for name, was := range before {
		if now := after[name]; now != was {
			t.Errorf("%s was written: %s, before %s", name, now, was)
		}
	}
}

// TestRestarts stops and starts the program at any time during an update. No more nodes than maxUnavailable have no ready
// pod, and no node has two.
func TestRestarts(t *testing.T) {
	stop := start(t, server)
	w := newWorld(t, 4).create(nil)
	w.images("agent:1", "agent:1", "agent:1", "agent:1")
	unwatch := w.watch(func(pods map[string]*corev1.Pod) error {
		nodes := map[string]bool{}
		for _, pod := range pods {
			if node := nodefit.Target(pod); planning.Active(pod) && nodes[node] {
				return fmt.Errorf("node %s has two pods", node)
			} else if planning.Active(pod) {
				nodes[node] = true
			}
		}
		n := readyNodes(pods)
		return await.ErrorIf(n < 3, "%d nodes have a ready pod", n)
	})
	w.setImage("agent:2")
	updated := func(n int) {
		w.until(fmt.Sprintf("%d nodes are updated", n), func() error {
			for _, pod := range w.pods() {
				if pod.Spec.Containers[0].Image == "agent:2" {
					n--
				}
			}
			return await.ErrorIf(n > 0, "not yet")
		})
	}
	for n := range 4 {
		updated(n + 1)
		stop()
		stop = start(t, server)
	}
	w.images("agent:2", "agent:2", "agent:2", "agent:2")
	unwatch()
	stop()
}
