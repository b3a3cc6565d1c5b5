// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonsets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// TestTakeOver starts the program with a set, pods and a revision as OpenKruise stores them, and again with its own:
// it writes no pod and no revision. Then it updates, and its revisions have what OpenKruise compares.
func TestTakeOver(t *testing.T) {
	w := newWorld(t, 3).create(func(set *v1alpha1.DaemonSet) {
		set.Spec.BurstReplicas = number(250)
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) {
			r.Type, r.MaxUnavailable, r.MaxSurge = v1alpha1.StandardRollingUpdateType, number(1), new(intstr.FromInt32(0))
		})
	})
	owner := metav1.NewControllerRef(w.set, v1alpha1.GroupVersion().WithKind("DaemonSet"))
	owner.APIVersion = "apps.kruise.io/v1beta1" // That of OpenKruise 1.9.
	const hash = "5d4b6f7c9"
	must(t, w.Client.Create(t.Context(), &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.set.Namespace, Name: "agent-" + hash, OwnerReferences: []metav1.OwnerReference{*owner},
			Labels: map[string]string{"app": "agent", appsv1.DefaultDaemonSetUniqueLabelKey: hash},
		},
		Data: runtime.RawExtension{Raw: upstreamData(t, w.set)}, Revision: 1,
	}))
	for i := range 3 {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.set.Namespace, GenerateName: "agent-", OwnerReferences: []metav1.OwnerReference{*owner},
				Labels: map[string]string{"app": "agent", appsv1.DefaultDaemonSetUniqueLabelKey: hash},
			},
			Spec: *w.set.Spec.Template.Spec.DeepCopy(),
		}
		nodefit.Bind(&pod.Spec, w.node(i))
		must(t, w.Client.Create(t.Context(), pod))
	}
	w.images("agent:1", "agent:1", "agent:1")
	written := func() map[string]string {
		versions, revisions := map[string]string{}, &appsv1.ControllerRevisionList{}
		must(t, w.Client.List(t.Context(), revisions, client.InNamespace(w.set.Namespace)))
		for i := range revisions.Items {
			versions[revisions.Items[i].Name] = revisions.Items[i].ResourceVersion
		}
		for _, pod := range w.pods() {
			versions[pod.Name] = pod.ResourceVersion
		}
		return versions
	}
	before := written()
	stop := start(t, server)
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionTrue, "Updated")
	if w.set.Status.DaemonSetHash != hash || w.set.Status.NumberAvailable != 3 {
		t.Errorf("status %+v", w.set.Status)
	}
	stop()
	if after := written(); !maps.Equal(before, after) {
		t.Errorf("objects %v were written: %v", before, after)
	}
	stop = start(t, server)
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:2")
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionTrue, "Updated")
	stop()
	before = written()
	// OpenKruise finds the revision by its data, and the pods by the label of the revision.
	current := &appsv1.ControllerRevision{}
	must(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.set.Namespace, Name: "agent-" + w.set.Status.DaemonSetHash}, current))
	if want := string(upstreamData(t, w.set)); string(current.Data.Raw) != want || current.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != w.set.Status.DaemonSetHash ||
		w.pods()[0].Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != w.set.Status.DaemonSetHash {
		t.Errorf("revision %+v\nwant data %s", current, want)
	}
	stop = start(t, server)
	// A change of another node shows that the program has planned.
	w.addNode(3)
	w.images("agent:2", "agent:2", "agent:2", "agent:2")
	stop()
	for name, was := range before {
		if now := written()[name]; now != was {
			t.Errorf("%s was written: %s, before %s", name, now, was)
		}
	}
}

// upstreamData returns the data of the revision of a set as OpenKruise encodes it.
func upstreamData(t *testing.T, set *v1alpha1.DaemonSet) []byte {
	t.Helper()
	encoded, err := json.Marshal(set)
	must(t, err)
	whole := map[string]any{}
	must(t, json.Unmarshal(encoded, &whole))
	template := whole["spec"].(map[string]any)["template"].(map[string]any)
	template["$patch"] = "replace"
	template["metadata"].(map[string]any)["creationTimestamp"] = nil // The libraries of its Kubernetes version write it.
	encoded, err = json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	must(t, err)
	return encoded
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
		if n := readyNodes(pods); n < 3 {
			return fmt.Errorf("%d nodes have a ready pod", n)
		}
		return nil
	})
	w.setImage("agent:2")
	updated := func(n int) {
		w.until(fmt.Sprintf("%d nodes are updated", n), func() error {
			for _, pod := range w.pods() {
				if pod.Spec.Containers[0].Image == "agent:2" {
					n--
				}
			}
			if n > 0 {
				return errors.New("not yet")
			}
			return nil
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
