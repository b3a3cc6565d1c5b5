// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// The subresources of pods that patches write to.
const (
	statusSubresource = "status"
	resizeSubresource = "resize"
)

type podRequest struct {
	subresource string
	metadata    map[string]any
	spec        map[string]any
	status      map[string]any
}

func (x *execution) patches(ctx context.Context, patches []planning.PodPatch) {
	x.forEach(ctx, len(patches), func(ctx context.Context, i int) { x.patch(ctx, &patches[i]) })
}

// patch executes the requests of a patch in order, each with the resource version of the one
// before.
func (x *execution) patch(ctx context.Context, patch *planning.PodPatch) {
	// SidecarSets have pods in many namespaces. A pod of one without rights must not stop the others.
	missing := request{
		kind: podKind, operation: "patch", name: x.nameOf(patch.Pod), namespace: patch.Pod.Namespace, patched: patch.Pod.UID, update: true,
	}
	if x.set.Object.GetNamespace() == "" && !x.granted(patch.Pod.Namespace, missing) {
		return
	}
	if patch.Controller == planning.Adopt {
		if err := x.current(); err != nil {
			x.note(request{kind: podKind, operation: "adopt", name: patch.Pod.Name, update: true}, err)
			return
		}
	}
	version := patch.Pod.ResourceVersion
	parts := podRequests(patch, x.set)
	for i, part := range parts {
		stored, err := x.send(ctx, patch.Pod, version, part)
		if part.subresource == resizeSubresource && resizeRefused(err) {
			stored, err = x.send(ctx, patch.Pod, version, podRequest{metadata: map[string]any{
				"annotations": map[string]string{pub.ResizeRefusedKey: err.Error()},
			}})
		}
		x.note(request{
			kind: podKind, operation: "patch", name: x.nameOf(patch.Pod), namespace: patch.Pod.Namespace, reason: patch.Reason, version: stored,
			patched: patch.Pod.UID, update: true, last: i == len(parts)-1,
		}, err)
		if err != nil {
			return
		}
		version = stored
	}
}

// nameOf returns the name of a pod, with its namespace if the set belongs to none.
func (x *execution) nameOf(pod *corev1.Pod) string {
	if x.set.Object.GetNamespace() == "" {
		return client.ObjectKeyFromObject(pod).String()
	}
	return pod.Name
}

// resizeRefused reports whether the API server can never resize the pod. The planner is told with an
// annotation, and recreates the pod. API servers before Kubernetes 1.33 do not have the subresource.
func resizeRefused(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsBadRequest(err)
}

// compare returns errOutdated if the set does not exist, is being deleted, or has another generation than
// the planner saw. The cache may be older, for example after another process became the leader: pods that
// a scale-out has made necessary again must not be deleted, nor their claims, and the pods of a set that was deleted as an
// orphan must not be adopted.
func (x *execution) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, x.options.Timeout)
	defer cancel()
	seen, live := x.set.Object, &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(x.set.GroupVersionKind)
	err := x.options.Live.Get(ctx, client.ObjectKeyFromObject(seen), live)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("get the set before pods or claims are deleted or adopted: %w", err)
	case err != nil || live.UID != seen.GetUID() || live.Generation != seen.GetGeneration() || live.DeletionTimestamp != nil:
		return errOutdated
	default:
		return nil
	}
}

// podRequests returns the requests of a patch. Conditions, labels and annotations are one request
// to the status if nothing else in the metadata or the specification changes.
func podRequests(patch *planning.PodPatch, set Set) []podRequest {
	main := podRequest{metadata: map[string]any{}}
	if labels := labelsOf(patch, set.Kind); len(labels) > 0 {
		main.metadata["labels"] = labels
	}
	if len(patch.Annotations) > 0 {
		main.metadata["annotations"] = patch.Annotations
	}
	switch patch.Controller {
	case planning.Adopt:
		main.metadata["ownerReferences"] = []any{metav1.NewControllerRef(set.Object, set.GroupVersionKind)}
	case planning.Release:
		main.metadata["ownerReferences"] = []any{map[string]any{"$patch": "delete", "uid": set.Object.GetUID()}}
	case planning.KeepController:
	}
	main.spec = containers(patch.Pod, func(name string) map[string]any {
		if image, found := patch.Images[name]; found {
			return map[string]any{"image": image}
		}
		return nil
	})
	if patch.Stop {
		main.spec = map[string]any{"activeDeadlineSeconds": 1}
	}
	var requests []podRequest
	if len(patch.Conditions) > 0 {
		status := podRequest{subresource: statusSubresource, status: map[string]any{"conditions": patch.Conditions}}
		if main.spec == nil && patch.Controller == planning.KeepController {
			status.metadata, main.metadata = main.metadata, nil
		}
		requests = append(requests, status)
	}
	if len(main.metadata) > 0 || main.spec != nil {
		requests = append(requests, main)
	}
	resources := containers(patch.Pod, func(name string) map[string]any {
		if wanted, found := patch.Resources[name]; found {
			return map[string]any{"resources": wanted}
		}
		return nil
	})
	if resources != nil {
		requests = append(requests, podRequest{subresource: resizeSubresource, spec: resources})
	}
	return requests
}

// labelsOf returns the changes of labels of a patch. An adopted pod gets the label WorkloadKey, a released one loses it, and
// that of others does not follow the template.
func labelsOf(patch *planning.PodPatch, kind string) map[string]*string {
	labels := maps.Clone(patch.Labels)
	delete(labels, pub.WorkloadKey)
	if patch.Controller == planning.KeepController {
		return labels
	}
	if labels == nil {
		labels = map[string]*string{}
	}
	labels[pub.WorkloadKey] = nil
	if patch.Controller == planning.Adopt {
		labels[pub.WorkloadKey] = &kind
	}
	return labels
}

// containers returns the part of a pod's specification that changes containers, nil if no container
// changes.
func containers(pod *corev1.Pod, change func(name string) map[string]any) map[string]any {
	spec := map[string]any{}
	for field, list := range map[string][]corev1.Container{
		"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers,
	} {
		var changed []any
		for i := range list {
			if fields := change(list[i].Name); fields != nil {
				fields["name"] = list[i].Name
				changed = append(changed, fields)
			}
		}
		if changed != nil {
			spec[field] = changed
		}
	}
	if len(spec) == 0 {
		return nil
	}
	return spec
}

// send sends a request and returns the pod's resource version after it.
func (x *execution) send(ctx context.Context, pod *corev1.Pod, version string, part podRequest) (string, error) {
	metadata := map[string]any{"uid": pod.UID, "resourceVersion": version}
	maps.Copy(metadata, part.metadata)
	body := map[string]any{"metadata": metadata}
	if part.spec != nil {
		body["spec"] = part.spec
	}
	if part.status != nil {
		body["status"] = part.status
	}
	return x.write(ctx, pod, corev1.SchemeGroupVersion.WithKind("Pod"), types.StrategicMergePatchType, part.subresource, body)
}

// update sets the owners, the labels and the annotations of a claim or a revision to those of the
// object, and the fields, and returns the object's resource version after it. Labels and annotations
// are never removed.
func (x *execution) update(ctx context.Context, object client.Object, kind schema.GroupVersionKind, fields map[string]any) (string, error) {
	metadata := map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "ownerReferences": object.GetOwnerReferences(),
	}
	if labels := object.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := object.GetAnnotations(); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	fields["metadata"] = metadata
	return x.write(ctx, object, kind, types.MergePatchType, "", fields)
}

// write sends a patch of an object and returns the object's resource version after it. It decodes only the
// metadata of the response.
func (x *execution) write(
	ctx context.Context, object client.Object, kind schema.GroupVersionKind, patch types.PatchType, subresource string, fields map[string]any,
) (string, error) {
	if err := x.set.permits(strings.ToLower(kind.Kind), true, object); err != nil {
		return "", err
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("encode a patch: %w", err)
	}
	stored := &metav1.PartialObjectMetadata{ObjectMeta: nameOf(object)}
	stored.SetGroupVersionKind(kind)
	if subresource == "" {
		err = x.options.Client.Patch(ctx, stored, client.RawPatch(patch, body), client.FieldOwner(v1alpha1.FieldManager))
	} else {
		err = x.options.Client.SubResource(subresource).Patch(ctx, stored, client.RawPatch(patch, body), client.FieldOwner(v1alpha1.FieldManager))
	}
	return stored.ResourceVersion, err
}
