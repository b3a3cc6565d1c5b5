// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
)

// Kind returns the kind of the objects.
func Kind() schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind("BroadcastJob") }

// Name returns the name of the pod of a node. It is always the same, so that a node has one pod at most, and a pod whose
// creation was not answered is found.
func Name(job, node string) string { return job + "-" + nodefit.NameSuffix(node) }

// Pod returns the pod of a node.
func Pod(job *v1alpha1.BroadcastJob, node string) *corev1.Pod {
	template := &job.Spec.Template
	labels := map[string]string{}
	maps.Copy(labels, template.Labels)
	labels[v1alpha1.BroadcastJobNameKey], labels[v1alpha1.BroadcastJobUIDKey] = job.Name, string(job.UID)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: Name(job.Name, node), Labels: labels,
			Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, Kind())},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	pod.Spec.RestartPolicy = cmp.Or(pod.Spec.RestartPolicy, corev1.RestartPolicyOnFailure)
	pod.Spec.Tolerations = nodefit.Tolerations(&pod.Spec)
	nodefit.Bind(&pod.Spec, node)
	return pod
}
