// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes the controllers' decisions: marks to pods, plans to NodePodProbes,
// status and finalizers to markers. Each write is one request that contains only fields that
// Seamark owns, except the removal of marks that other managers set too. Recent prevents repeated
// writes until the cache has the last one.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
)

// ErrGone means that the object no longer exists, or that there is another object with the same
// name.
var ErrGone = errors.New("object is gone")

// Pods writes marks to pods.
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
	body, err := json.Marshal(configuration(pod, marks))
	if err != nil {
		return "", fmt.Errorf("encode marks of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	version, err := p.patch(ctx, pod, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, Force: new(true)})
	if err != nil {
		return "", fmt.Errorf("apply marks of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return version, nil
}

// Try asks the API server whether it accepts the marks, as Marks does, but writes nothing.
func (p *Pods) Try(ctx context.Context, pod *corev1.Pod, marks mark.Marks) error {
	body, err := json.Marshal(configuration(pod, marks))
	if err != nil {
		return fmt.Errorf("encode marks of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	_, err = p.patch(ctx, pod, types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: v1alpha1.FieldManager, Force: new(true), DryRun: []string{metav1.DryRunAll},
	})
	if err != nil {
		return fmt.Errorf("try marks of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// patch patches the pod's status and returns the pod's resource version after the write. The
// body must contain the UID. The error is ErrGone if the pod no longer exists or another pod has
// its name.
func (p *Pods) patch(ctx context.Context, pod *corev1.Pod, kind types.PatchType, body []byte, options metav1.PatchOptions) (string, error) {
	pods := p.client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(pod.Namespace)
	written, err := pods.Patch(ctx, pod.Name, kind, body, options, "status")
	switch {
	case err == nil:
		return written.ResourceVersion, nil
	case apierrors.IsNotFound(err), isOtherUID(err), apierrors.IsConflict(err) && p.replaced(ctx, pods, pod):
		return "", ErrGone
	default:
		return "", err
	}
}

// isOtherUID reports whether the API server rejected the write because the object has another
// UID, which it treats as an attempt to change the UID.
func isOtherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// replaced reports whether the pod no longer exists or another pod has its name. If a pod is
// recreated during the write, the API server returns a conflict.
func (p *Pods) replaced(ctx context.Context, pods metadata.ResourceInterface, pod *corev1.Pod) bool {
	live, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
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
