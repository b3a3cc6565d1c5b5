// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonsets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/openkruise"
)

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
		return openkruise.Versions(t, w.Client, w.Namespace, corev1.SchemeGroupVersion.WithKind("Pod"), appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
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
	expect.Equal(t, before, written(), "the take-over has written objects")
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
					if c.Type == v1alpha1.DaemonSetProgressing && (c.Reason == "Updating" || c.Reason == "BlockedByUnavailable") && w.set.Status.ObservedGeneration == w.set.Generation {
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
