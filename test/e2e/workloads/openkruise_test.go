// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// drained is the finalizer of the preDelete hook of the sets in testdata/openkruise.
const drained = "example.com/drained"

// openKruise does what OpenKruise 1.9 does: it holds the lease of its manager, and its CRDs have
// neither defaults nor rules, which are in its webhooks.
type openKruise struct {
	*suite
	ours, theirs []*apiextensionsv1.CustomResourceDefinition
	lease        *coordinationv1.Lease
}

func newOpenKruise(s *suite) *openKruise {
	s.Helper()
	k := &openKruise{suite: s}
	var err error
	k.ours, err = env.ReadCRDs("config/crd/workloads")
	cluster.Must(s, err)
	for _, crd := range k.ours {
		k.theirs = append(k.theirs, env.Upstream(crd))
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), cluster.Timeout)
		defer cancel()
		if err := k.leave(ctx); err != nil {
			s.Errorf("end OpenKruise: %v", err)
		}
	})
	return k
}

// begin waits until Seamark has left the sets to OpenKruise, and replaces the CRDs.
func (k *openKruise) begin() {
	k.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}}
	cluster.Must(k, ctrl.IgnoreAlreadyExists(k.Client.Create(k.Context(), namespace)))
	k.lease = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "kruise-manager"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("kruise-controller-manager-0"), LeaseDurationSeconds: new(int32(3600)),
			RenewTime: new(metav1.NewMicroTime(time.Now())),
		},
	}
	cluster.Must(k, ctrl.IgnoreAlreadyExists(k.Client.Create(k.Context(), builders.OpenKruiseWebhook(namespace.Name))))
	cluster.Must(k, k.Client.Create(k.Context(), k.lease))
	k.Eventually("Seamark yields", func(ctx context.Context) error {
		events := &corev1.EventList{}
		err := k.Client.List(ctx, events, ctrl.InNamespace(namespace.Name))
		if err == nil && !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID == k.lease.UID }) {
			err = fmt.Errorf("%d events, none for the lease", len(events.Items))
		}
		return err
	})
	cluster.Must(k, k.UseCRDs(k.Context(), k.theirs))
	k.Eventually("the CRDs have no rules", func(context.Context) error { return k.invalid() })
}

// end does what docs/migrate-from-openkruise.md describes, and waits until Seamark acts on sets of both kinds.
func (k *openKruise) end() {
	k.Helper()
	cluster.Must(k, k.leave(k.Context()))
	k.Eventually("the CRDs have rules", func(context.Context) error {
		if err := k.invalid(); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a set that is invalid: %w", err)
		}
		return nil
	})
	empty := []ctrl.Object{newCloneSet("empty", 0), newStatefulSet("empty", 0)}
	k.Create(empty...)
	for _, set := range empty {
		k.Eventually("Seamark acts", func(ctx context.Context) error { return k.updated(ctx, set, 0) })
	}
}

// invalid creates a set that only OpenKruise's webhook refuses, and stores nothing.
func (k *openKruise) invalid() error {
	set := newCloneSet("invalid", 0, func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Type = "Other" })
	set.Namespace = k.Namespace
	return k.Client.Create(k.Context(), set, ctrl.DryRunAll)
}

// leave replaces the CRDs with those of Seamark, and gives up the lease.
func (k *openKruise) leave(ctx context.Context) error {
	err := k.UseCRDs(ctx, k.ours)
	if err == nil && k.lease != nil {
		err = errors.Join(ctrl.IgnoreNotFound(k.Client.Delete(ctx, k.lease)),
			ctrl.IgnoreNotFound(k.Client.Delete(ctx, builders.OpenKruiseWebhook(k.lease.Namespace))))
	}
	return err
}

// store creates the set, its revision, its claims and its pods as OpenKruise stores them.
func (m *moved) store() {
	m.Helper()
	ctx := m.Context()
	// The annotation of kubectl is that of the user's manifest, the fields are those with defaults.
	applied, set := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	out := m.Kubectl("create", "-f", m.file(".yaml"), "--save-config", "--dry-run=client", "--output=json")
	cluster.Must(m, json.Unmarshal([]byte(out), &applied.Object))
	m.read(".json", &set.Object)
	set.SetNamespace(m.Namespace)
	set.SetAnnotations(applied.GetAnnotations())
	delete(set.Object, "status")
	cluster.Must(m, m.Client.Create(ctx, set, ctrl.FieldOwner("kubectl-client-side-apply")))

	owner := metav1.NewControllerRef(set, set.GroupVersionKind())
	revision := &appsv1.ControllerRevision{}
	m.read(".revision.json", revision)
	if got := encode(m, set); !bytes.Equal(got, revision.Data.Raw) {
		m.Fatalf("the rules of the test encode\n%s\nand OpenKruise\n%s", got, revision.Data.Raw)
	}
	revision.Namespace, revision.OwnerReferences = m.Namespace, []metav1.OwnerReference{*owner}
	maps.Copy(revision.Annotations, set.GetAnnotations())
	cluster.Must(m, m.Client.Create(ctx, revision, ctrl.FieldOwner("kruise-manager")))
	for _, id := range m.ids {
		m.storePod(set, owner, revision.Name, id)
	}
	m.settled(m.name, len(m.ids))

	pods := int64(len(m.ids))
	cluster.Must(m, m.Client.Get(ctx, m.Key(m.name), set))
	status := map[string]any{
		"observedGeneration": set.GetGeneration(), "replicas": pods, "readyReplicas": pods, "availableReplicas": pods,
		"updatedReplicas": pods, "updatedReadyReplicas": pods, "updatedAvailableReplicas": pods,
		"currentRevision": revision.Name, "updateRevision": revision.Name, "collisionCount": int64(0), "labelSelector": "app=" + m.name,
	}
	if m.kind == "CloneSet" {
		status["expectedUpdatedReplicas"] = pods
	} else {
		status["currentReplicas"] = pods
	}
	set.Object["status"] = status
	cluster.Must(m, m.Client.Status().Update(ctx, set, ctrl.FieldOwner("kruise-manager")))
	var err error
	m.before, err = m.identities(ctx)
	cluster.Must(m, err)
}

// storePod creates a pod and its claim, and sets the conditions that OpenKruise sets.
func (m *moved) storePod(set *unstructured.Unstructured, owner *metav1.OwnerReference, revision, id string) {
	m.Helper()
	template := templateOf(m, set)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name, pod.OwnerReferences = m.Namespace, m.name+"-"+id, []metav1.OwnerReference{*owner}
	pod.Finalizers = []string{drained}
	pod.Annotations[pub.LifecycleTimestampKey] = time.Now().UTC().Format(time.RFC3339)
	pod.Labels[pub.LifecycleStateKey] = string(pub.LifecycleStateNormal)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: "data-" + pod.Name, Labels: map[string]string{"app": m.name},
	}}
	if m.kind == "CloneSet" {
		pod.Labels[v1alpha1.CloneSetInstanceID], claim.Labels[v1alpha1.CloneSetInstanceID] = id, id
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = shortHash(revision)
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: pub.InPlaceUpdateReady})
		claim.OwnerReferences = pod.OwnerReferences
	} else {
		pod.Labels[appsv1.StatefulSetPodNameLabel], pod.Labels[appsv1.PodIndexLabel] = pod.Name, id
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, m.name
	}
	pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: pub.KruisePodReadyConditionType})
	pod.Spec.Volumes = append([]corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
	}}}, pod.Spec.Volumes...)
	for i := range pod.Spec.Containers {
		// The nodes have the image, and there is no registry. Only templates are compared.
		pod.Spec.Containers[i].ImagePullPolicy = corev1.PullIfNotPresent
	}
	var claims []corev1.PersistentVolumeClaim
	decodeField(m, set, &claims, "spec", "volumeClaimTemplates")
	claim.Spec = claims[0].Spec
	m.provide(claim)
	cluster.Must(m, m.Client.Create(m.Context(), claim, ctrl.FieldOwner("kruise-manager")))
	cluster.Must(m, m.Client.Create(m.Context(), pod, ctrl.FieldOwner("kruise-manager")))
	base := pod.DeepCopy()
	for _, condition := range []corev1.PodConditionType{pub.InPlaceUpdateReady, pub.KruisePodReadyConditionType} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
	}
	cluster.Must(m, m.Client.Status().Patch(m.Context(), pod, ctrl.StrategicMergeFrom(base), ctrl.FieldOwner("kruise-manager")))
}

// provide creates a volume for the claim, which is deleted with the test.
func (m *moved) provide(claim *corev1.PersistentVolumeClaim) {
	m.Helper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: m.Namespace + "-" + claim.Name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: m.volumes + "/" + claim.Name, Type: new(corev1.HostPathDirectoryOrCreate),
			}},
		},
	}
	cluster.Must(m, m.Client.Create(m.Context(), volume))
}
