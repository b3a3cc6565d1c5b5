// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes the controllers' decisions: marks to pods, plans to NodePodProbes,
// status and finalizers to markers. Each write is one request that contains only fields that
// Seamark owns, except the removal of marks that other managers set too. Expectations prevent
// repeated writes until the cache has the last one.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/apierror"
)

// ErrOutdated means that the object has changed since it was read.
var ErrOutdated = errors.New("object has changed since it was read")

// Pods writes marks and annotations to pods.
type Pods struct {
	client metadata.Interface
}

// NewPods returns a writer of marks. It needs the verb patch on pods/status, and the verb get on
// pods to interpret some conflicts.
func NewPods(client metadata.Interface) *Pods {
	return &Pods{client: client}
}

// Marks sets the complete marks of the pod in one server-side apply to its status, which removes
// all other marks that Seamark owns. It returns the pod's resource version after the write. The
// error is ErrGone if the pod no longer exists or another pod has its name.
func (p *Pods) Marks(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error) {
	return p.patch(ctx, "apply marks of", pod, types.ApplyPatchType, configuration(pod, marks), metav1.PatchOptions{Force: new(true)})
}

// MarksOn is like Marks, but writes only the version of the pod that was read. It returns ErrOutdated if
// the pod has another one.
func (p *Pods) MarksOn(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error) {
	version, err := p.patch(ctx, "apply exclusive marks of", pod, types.ApplyPatchType,
		configuration(pod, marks).WithResourceVersion(pod.ResourceVersion), metav1.PatchOptions{Force: new(true)})
	if apierrors.IsConflict(err) {
		err = errors.Join(ErrOutdated, err)
	}
	return version, err
}

// Try asks the API server whether it accepts the marks, as Marks does, but writes nothing.
func (p *Pods) Try(ctx context.Context, pod *corev1.Pod, marks mark.Marks) error {
	_, err := p.patch(ctx, "try marks of", pod, types.ApplyPatchType, configuration(pod, marks),
		metav1.PatchOptions{Force: new(true), DryRun: []string{metav1.DryRunAll}})
	return err
}

// Handover sets the annotations that tell the pod's provider what to probe, in one write to the
// pod's status, and returns the pod's resource version after it. Empty annotations are removed.
// An apply could not remove those that the webhook set, because they belong to the client that
// created the pod. The error is ErrGone if the pod no longer exists or another pod has its name.
func (p *Pods) Handover(ctx context.Context, pod *corev1.Pod, annotations serverless.Annotations) (string, error) {
	return p.patch(ctx, "annotate", pod, types.MergePatchType, map[string]any{"metadata": map[string]any{
		"uid": pod.UID,
		"annotations": map[string]any{
			v1alpha1.PodProbeMarkerAnnotationKey:     orNull(annotations.Probes),
			v1alpha1.PodProbeMarkerListAnnotationKey: orNull(annotations.Markers),
		},
	}}, metav1.PatchOptions{})
}

// GuardExempt sets or removes the label that releases the version of the pod that was read from its guards. It is no mark, so that
// Marks does not remove it. The error is ErrOutdated if the pod has changed, because others may have set the label, and ErrGone if
// the pod no longer exists.
func (p *Pods) GuardExempt(ctx context.Context, pod *corev1.Pod, exempt bool) (string, error) {
	value := ""
	if exempt {
		value = v1alpha1.GuardExemptMaxDuration
	}
	version, err := p.patch(ctx, "label", pod, types.MergePatchType, map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "labels": map[string]any{v1alpha1.GuardExemptKey: orNull(value)},
	}}, metav1.PatchOptions{})
	if apierrors.IsConflict(err) {
		err = errors.Join(ErrOutdated, err)
	}
	return version, err
}

// orNull returns null, which removes a key in a merge patch, for an empty value.
func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// Remove removes the keys from the pod, even if other managers own them too, in one write to its
// status. It returns the pod's resource version after the write. The error is ErrOutdated if the
// pod has changed, because its owners may have changed too, and ErrGone if it no longer exists.
func (p *Pods) Remove(ctx context.Context, pod *corev1.Pod, keys []mark.Key) (string, error) {
	version, err := patch(ctx, p.resource(pod), pod.Name, types.StrategicMergePatchType, removal(pod, keys), metav1.PatchOptions{}, "status")
	if apierrors.IsConflict(err) {
		err = ErrOutdated
	}
	if err != nil {
		return "", fmt.Errorf("remove marks from pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return version, nil
}

// removal returns a strategic merge patch: null removes a key from a map, and a directive removes
// a condition by its type.
func removal(pod *corev1.Pod, keys []mark.Key) map[string]any {
	metadata := map[string]any{"resourceVersion": pod.ResourceVersion}
	var conditions []map[string]any
	for _, key := range keys {
		switch key.Kind {
		case mark.KindLabel:
			_ = unstructured.SetNestedField(metadata, nil, "labels", key.Name)
		case mark.KindAnnotation:
			_ = unstructured.SetNestedField(metadata, nil, "annotations", key.Name)
		case mark.KindCondition:
			conditions = append(conditions, map[string]any{"$patch": "delete", "type": key.Name})
		}
	}
	patch := map[string]any{"metadata": metadata}
	if len(conditions) > 0 {
		patch["status"] = map[string]any{"conditions": conditions}
	}
	return patch
}

func (p *Pods) resource(pod *corev1.Pod) metadata.ResourceInterface {
	return p.client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(pod.Namespace)
}

// patch patches the pod's status and returns the pod's resource version after the write. The
// body must contain the UID. The error is ErrGone if the pod no longer exists or another pod has
// its name.
func (p *Pods) patch(ctx context.Context, verb string, pod *corev1.Pod, kind types.PatchType, body any, options metav1.PatchOptions) (string, error) {
	version, err := patch(ctx, p.resource(pod), pod.Name, kind, body, options, "status")
	if apierror.IsOtherUID(err) || apierrors.IsConflict(err) && p.replaced(ctx, pod) {
		err = ErrGone
	}
	if err != nil {
		return "", fmt.Errorf("%s pod %s/%s: %w", verb, pod.Namespace, pod.Name, err)
	}
	return version, nil
}

// replaced reports whether the pod no longer exists or another pod has its name. If a pod is
// recreated during the write, the API server returns a conflict.
func (p *Pods) replaced(ctx context.Context, pod *corev1.Pod) bool {
	live, err := p.resource(pod).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return live.UID != pod.UID
}

// configuration includes the pod's UID, so that the marks of a deleted pod never reach a new
// pod with the same name.
func configuration(pod *corev1.Pod, marks mark.Marks) *corev1apply.PodApplyConfiguration {
	config := corev1apply.Pod(pod.Name, pod.Namespace).WithUID(pod.UID)
	status := corev1apply.PodStatus()
	for _, key := range marks.Keys() {
		value := marks[key]
		switch key.Kind {
		case mark.KindLabel:
			config.WithLabels(map[string]string{key.Name: value.Text})
		case mark.KindAnnotation:
			config.WithAnnotations(map[string]string{key.Name: value.Text})
		case mark.KindCondition:
			status.WithConditions(condition(key.Name, value.Condition))
		}
	}
	if len(status.Conditions) > 0 {
		config.WithStatus(status)
	}
	return config
}

func condition(conditionType string, c mark.Condition) *corev1apply.PodConditionApplyConfiguration {
	config := corev1apply.PodCondition().WithType(corev1.PodConditionType(conditionType))
	if c.Status != "" {
		config.WithStatus(c.Status)
	}
	if c.Reason != "" {
		config.WithReason(c.Reason)
	}
	if c.Message != "" {
		config.WithMessage(c.Message)
	}
	if !c.LastProbeTime.IsZero() {
		config.WithLastProbeTime(c.LastProbeTime)
	}
	if !c.LastTransitionTime.IsZero() {
		config.WithLastTransitionTime(c.LastTransitionTime)
	}
	return config
}

// ErrGone means that the object no longer exists, or that there is another object with the same
// name.
var ErrGone = errors.New("object is gone")

// patch sends the body as a patch of Seamark's field manager. It returns the object's resource version
// after the write. The error is ErrGone if the object no longer exists.
func patch(
	ctx context.Context, objects metadata.ResourceInterface, name string, kind types.PatchType, body any, options metav1.PatchOptions, subresources ...string,
) (string, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("encode patch: %w", err)
	}
	options.FieldManager = v1alpha1.FieldManager
	written, err := objects.Patch(ctx, name, kind, encoded, options, subresources...)
	if err != nil {
		return "", orGone(err)
	}
	return written.ResourceVersion, nil
}

func orGone(err error) error {
	if apierrors.IsNotFound(err) {
		return errors.Join(ErrGone, err)
	}
	return err
}
