// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builders builds the objects that tests use. Each constructor returns a valid and
// complete object, so that a test states only what it is about.
package builders

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// PodBuilder builds a pod.
type PodBuilder struct{ pod corev1.Pod }

// Pod starts a running, initialized pod on the node "node-1", with the UID
// "uid-<name>", the address 10.0.0.1 and one container "main".
func Pod(namespace, name string) *PodBuilder {
	return &PodBuilder{pod: corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1",
		},
		Spec: corev1.PodSpec{
			NodeName:   "node-1",
			Containers: []corev1.Container{{Name: "main", Image: "busybox:1.35"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{
				Type: corev1.PodInitialized, Status: corev1.ConditionTrue,
			}},
		},
	}}
}

// Label adds a label.
func (b *PodBuilder) Label(key, value string) *PodBuilder {
	set(&b.pod.Labels, key, value)
	return b
}

// Annotation adds an annotation.
func (b *PodBuilder) Annotation(key, value string) *PodBuilder {
	set(&b.pod.Annotations, key, value)
	return b
}

// UID replaces the UID.
func (b *PodBuilder) UID(uid string) *PodBuilder {
	b.pod.UID = types.UID(uid)
	return b
}

// Owner adds an owner.
func (b *PodBuilder) Owner(owner metav1.OwnerReference) *PodBuilder {
	b.pod.OwnerReferences = append(b.pod.OwnerReferences, owner)
	return b
}

// Node binds the pod to the node; empty unbinds it.
func (b *PodBuilder) Node(name string) *PodBuilder {
	b.pod.Spec.NodeName = name
	return b
}

// NodeSelector adds a label that the pod's node must have.
func (b *PodBuilder) NodeSelector(key, value string) *PodBuilder {
	set(&b.pod.Spec.NodeSelector, key, value)
	return b
}

// Unsaved removes the fields that the API server sets: UID and resource version.
func (b *PodBuilder) Unsaved() *PodBuilder {
	b.pod.UID, b.pod.ResourceVersion = "", ""
	return b
}

// IP replaces the address.
func (b *PodBuilder) IP(address string) *PodBuilder {
	b.pod.Status.PodIP = address
	return b
}

// Phase replaces the phase.
func (b *PodBuilder) Phase(phase corev1.PodPhase) *PodBuilder {
	b.pod.Status.Phase = phase
	return b
}

// Initialized replaces the status of the condition Initialized.
func (b *PodBuilder) Initialized(status corev1.ConditionStatus) *PodBuilder {
	b.pod.Status.Conditions[0].Status = status
	return b
}

// Ran adds the status of a container that has run.
func (b *PodBuilder) Ran() *PodBuilder {
	b.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "containerd://main"}}
	return b
}

// Condition adds a condition.
func (b *PodBuilder) Condition(condition corev1.PodCondition) *PodBuilder {
	b.pod.Status.Conditions = append(b.pod.Status.Conditions, condition)
	return b
}

// Terminating sets the deletion timestamp.
func (b *PodBuilder) Terminating() *PodBuilder {
	b.pod.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(1, 0).Time}
	b.pod.Finalizers = []string{"example.com/held"}
	return b
}

// Container adds a container with the named ports.
func (b *PodBuilder) Container(name string, ports ...corev1.ContainerPort) *PodBuilder {
	b.pod.Spec.Containers = append(b.pod.Spec.Containers,
		corev1.Container{Name: name, Image: "busybox:1.35", Ports: ports})
	return b
}

// InitContainer adds an init container, which is restartable if sidecar is true.
func (b *PodBuilder) InitContainer(name string, sidecar bool, ports ...corev1.ContainerPort) *PodBuilder {
	c := corev1.Container{Name: name, Image: "busybox:1.35", Ports: ports}
	if sidecar {
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
	b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, c)
	return b
}

// ManagedFields adds a managedFields entry of an apply to the subresource.
func (b *PodBuilder) ManagedFields(manager, subresource, fieldsV1 string) *PodBuilder {
	b.pod.ManagedFields = append(b.pod.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: subresource,
		APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fieldsV1),
	})
	return b
}

// Updated adds a managedFields entry of an update or patch of the subresource.
func (b *PodBuilder) Updated(manager, subresource, fieldsV1 string) *PodBuilder {
	b.ManagedFields(manager, subresource, fieldsV1)
	b.pod.ManagedFields[len(b.pod.ManagedFields)-1].Operation = metav1.ManagedFieldsOperationUpdate
	return b
}

// set adds an entry to a map, which it creates if necessary.
func set(all *map[string]string, key, value string) {
	if *all == nil {
		*all = map[string]string{}
	}
	(*all)[key] = value
}

// Build returns the pod.
func (b *PodBuilder) Build() *corev1.Pod { return b.pod.DeepCopy() }

// OpenKruiseWebhook returns the configuration by which an installation of OpenKruise in the namespace is
// known. Its webhook is for a resource that does not exist.
func OpenKruiseWebhook(namespace string) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: planning.OpenKruiseWebhook},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mpod.kb.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "kruise-webhook-service"},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"none"}},
			}},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
}
