// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/marking/states"
)

// Workload is a controller with its pods.
type Workload struct {
	Namespace string `json:"namespace"`
	// Kind is that of the controller. It is Deployment for the pods of its ReplicaSets, and Pod with
	// an empty Name for pods without a controller.
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	// Revisions are ordered by name.
	Revisions []Revision `json:"revisions"`
}

// Revision is one revision of a workload's template.
type Revision struct {
	// Name is the value of the label that names the revision. It is empty if pods have none.
	Name string `json:"name,omitempty"`
	// Pods are ordered by name.
	Pods []Pod `json:"pods"`
}

// Pod is a pod with its probes.
type Pod struct {
	Name  string          `json:"name"`
	Node  string          `json:"node,omitempty"`
	Phase corev1.PodPhase `json:"phase,omitempty"`
	// Terminating is whether the pod is being deleted.
	Terminating bool `json:"terminating,omitempty"`
	// Probes are the probes of the markers that select the pod, in the order of package probestate.
	Probes []probestate.Row `json:"probes,omitempty"`
}

// build groups the pods by workload and revision. Workloads are ordered by namespace, kind and name;
// pods without a controller come last.
func build(pods []*corev1.Pod, rows []probestate.Row) []Workload {
	probes := map[types.NamespacedName][]probestate.Row{}
	for i := range rows {
		key := types.NamespacedName{Namespace: rows[i].Namespace, Name: rows[i].Pod}
		probes[key] = append(probes[key], rows[i])
	}
	type place struct{ workload, revision int }
	var workloads []Workload
	workloadIndex := map[[3]string]int{}
	places := map[[4]string]place{}
	for _, pod := range slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }) {
		kind, name, revision := ownerOf(pod)
		id := [4]string{pod.Namespace, kind, name, revision}
		at, found := places[id]
		if !found {
			w, known := workloadIndex[[3]string(id[:3])]
			if !known {
				w = len(workloads)
				workloadIndex[[3]string(id[:3])] = w
				workloads = append(workloads, Workload{Namespace: pod.Namespace, Kind: kind, Name: name})
			}
			at = place{w, len(workloads[w].Revisions)}
			places[id] = at
			workloads[w].Revisions = append(workloads[w].Revisions, Revision{Name: revision})
		}
		r := &workloads[at.workload].Revisions[at.revision]
		r.Pods = append(r.Pods, Pod{
			Name: pod.Name, Node: pod.Spec.NodeName, Phase: pod.Status.Phase, Terminating: pod.DeletionTimestamp != nil,
			Probes: probes[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}],
		})
	}
	for _, w := range workloads {
		slices.SortFunc(w.Revisions, func(a, b Revision) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(workloads, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return workloads
}

// rank is higher for pods without a controller.
func rank(w Workload) int {
	if w.Name == "" {
		return 1
	}
	return 0
}

// ownerOf returns the workload and the revision of a pod. A ReplicaSet that belongs to a Deployment
// is recognized by its name, which ends with the hash of the template, so that ReplicaSets need not
// be read.
func ownerOf(pod *corev1.Pod) (kind, name, revision string) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return "Pod", "", ""
	}
	hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if deployment, isNamed := strings.CutSuffix(controller.Name, "-"+hash); isNamed && hash != "" && controller.Kind == "ReplicaSet" {
		return "Deployment", deployment, hash
	}
	return controller.Kind, controller.Name, pod.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// selects reports whether the text names the workload: NAME, or KIND/NAME with the kind in any case,
// singular, plural, or short, and with or without its group.
func selects(text string, w Workload) bool {
	kind, name, hasKind := strings.Cut(text, "/")
	if !hasKind {
		return text == w.Name
	}
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")
	full := strings.ToLower(w.Kind)
	return name == w.Name && (kind == full || kind == full+"s" || slices.Contains(shortNames(w.Kind), kind))
}

// shortNames returns the short names of a kind, as kubectl knows them.
func shortNames(kind string) []string {
	switch kind {
	case "Deployment":
		return []string{"deploy"}
	case "ReplicaSet":
		return []string{"rs"}
	case "StatefulSet":
		return []string{"sts", "asts"}
	case "DaemonSet":
		return []string{"ds", "daemon"}
	case "CloneSet":
		return []string{"clone"}
	default:
		return nil
	}
}
