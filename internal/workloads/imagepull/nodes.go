// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Nodes returns the nodes of a job in the order of its pulls: those that the job selects and that the program allows,
// without those that are being deleted and virtual ones, which have no images. pods are the pods of the namespace.
func Nodes(job *v1alpha1.ImagePullJob, allowed labels.Selector, nodes []*corev1.Node, pods []*corev1.Pod) ([]*corev1.Node, error) {
	selected, err := selection(job, pods)
	if err != nil {
		return nil, err
	}
	var found []*corev1.Node
	for _, node := range nodes {
		if node.DeletionTimestamp == nil && node.Labels[v1alpha1.NodeTypeLabel] != v1alpha1.NodeTypeVirtualKubelet &&
			selected(node) && allowed.Matches(labels.Set(node.Labels)) {
			found = append(found, node)
		}
	}
	compare := order(job)
	slices.SortFunc(found, func(a, b *corev1.Node) int { return compare(a.Name, b.Name) })
	return found, nil
}

// order returns how to compare the names of nodes of a job: by their positions in its selector, such as the order of an
// update, or as texts. A name that is not in the selector is before all others.
func order(job *v1alpha1.ImagePullJob) func(a, b string) int {
	if job.Spec.Selector == nil {
		return strings.Compare
	}
	positions := make(map[string]int, len(job.Spec.Selector.Names))
	for i, name := range job.Spec.Selector.Names {
		positions[name] = i + 1
	}
	return func(a, b string) int {
		return cmp.Or(cmp.Compare(positions[a], positions[b]), strings.Compare(a, b))
	}
}

// selection returns which nodes the job selects.
func selection(job *v1alpha1.ImagePullJob, pods []*corev1.Pod) (func(*corev1.Node) bool, error) {
	if pods, err := podSelection(job, pods); job.Spec.PodSelector != nil {
		return func(node *corev1.Node) bool { return pods.Has(node.Name) }, err
	}
	if job.Spec.Selector == nil {
		return func(*corev1.Node) bool { return true }, nil
	}
	if len(job.Spec.Selector.Names) > 0 {
		names := sets.New(job.Spec.Selector.Names...)
		return func(node *corev1.Node) bool { return names.Has(node.Name) }, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&job.Spec.Selector.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	return func(node *corev1.Node) bool { return selector.Matches(labels.Set(node.Labels)) }, nil
}

// podSelection returns the names of the nodes of the selected pods.
func podSelection(job *v1alpha1.ImagePullJob, pods []*corev1.Pod) (sets.Set[string], error) {
	if job.Spec.PodSelector == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&job.Spec.PodSelector.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.podSelector: %w", err)
	}
	names := sets.New[string]()
	for _, pod := range pods {
		active := pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
		if active && pod.Spec.NodeName != "" && selector.Matches(labels.Set(pod.Labels)) {
			names.Insert(pod.Spec.NodeName)
		}
	}
	return names, nil
}

// Usable reports whether a node can pull: it is ready and has free disk space.
func Usable(node *corev1.Node) bool {
	return planning.NodeHas(node, corev1.NodeReady) && !planning.NodeHas(node, corev1.NodeDiskPressure)
}
