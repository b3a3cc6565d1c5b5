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

	"github.com/seamark-dev/seamark/internal/marking/probestatus"
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
	// Probes are the probes of the markers that select the pod, in the order of package probestatus.
	Probes []probestatus.Row `json:"probes,omitempty"`
	// Guard is the guard that protects the pod from deletion, or nil.
	Guard *probestatus.Guard `json:"guard,omitempty"`
}

// build groups the pods by workload and revision. Workloads are ordered by namespace, kind and name;
// pods without a controller come last.
func build(pods []*corev1.Pod, states probestatus.States) []Workload {
	rows := states.Rows
	probes := map[types.NamespacedName][]probestatus.Row{}
	for i := range rows {
		key := types.NamespacedName{Namespace: rows[i].Namespace, Name: rows[i].Pod}
		probes[key] = append(probes[key], rows[i])
	}
	type owned struct {
		*corev1.Pod
		kind, owner, revision string
	}
	var all []owned
	for _, pod := range pods {
		kind, name, revision := OwnerOf(pod)
		all = append(all, owned{pod, kind, name, revision})
	}
	slices.SortFunc(all, func(a, b owned) int {
		if a.Namespace == b.Namespace && (a.owner == "") != (b.owner == "") {
			return cmp.Compare(b.owner, a.owner)
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.kind, b.kind), cmp.Compare(a.owner, b.owner),
			cmp.Compare(a.revision, b.revision), cmp.Compare(a.Name, b.Name))
	})
	var workloads []Workload
	for i, pod := range all {
		isNew := i == 0 || all[i-1].Namespace != pod.Namespace || all[i-1].kind != pod.kind || all[i-1].owner != pod.owner
		if isNew {
			workloads = append(workloads, Workload{Namespace: pod.Namespace, Kind: pod.kind, Name: pod.owner})
		}
		w := &workloads[len(workloads)-1]
		if isNew || all[i-1].revision != pod.revision {
			w.Revisions = append(w.Revisions, Revision{Name: pod.revision})
		}
		r := &w.Revisions[len(w.Revisions)-1]
		key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		r.Pods = append(r.Pods, Pod{
			Name: pod.Name, Node: pod.Spec.NodeName, Phase: pod.Status.Phase, Terminating: pod.DeletionTimestamp != nil,
			Probes: probes[key], Guard: states.Guards[key],
		})
	}
	return workloads
}

// OwnerOf returns the workload and the revision of a pod. The kind is Pod and the name is empty if it has no controller. A
// ReplicaSet that belongs to a Deployment is recognized by its name, which ends with the hash of the template, so that
// ReplicaSets need not be read.
func OwnerOf(pod *corev1.Pod) (kind, name, revision string) {
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
	// They are those that kubectl knows.
	short := map[string][]string{
		"deployment": {"deploy"}, "replicaset": {"rs"}, "statefulset": {"sts", "asts"}, "daemonset": {"ds", "daemon"}, "cloneset": {"clone"},
	}
	return name == w.Name && (kind == full || kind == full+"s" || slices.Contains(short[full], kind))
}
