// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes what the controllers decided: marks to pods, plans to
// NodePodProbes, status and finalizers to markers. Each write is one request that names
// only what Seamark owns, but for the removal of marks that OpenKruise left. Recent keeps
// a write from being repeated while the cache doesn't show it yet.
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
	"github.com/seamark-dev/seamark/internal/mark"
)

// ErrGone says that the object that was to be written is no longer there, or that
// another one has taken its name.
var ErrGone = errors.New("the object is gone")

// Pods writes marks to pods.
type Pods struct {
	client metadata.Interface
}

// NewPods returns a writer of marks. It needs the verb patch on pods/status, and get on
// pods for the rare refusal that needs a second look.
func NewPods(client metadata.Interface) *Pods {
	return &Pods{client: client}
}

// Marks makes the given marks the pod's complete marks, in one server-side apply to its
// status: what Seamark owns on the pod and is not among them comes off. It returns the
// pod's resource version after the write. The error is ErrGone where the pod is gone or
// a pod with another UID has its name.
func (p *Pods) Marks(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error) {
	body, err := json.Marshal(configuration(pod, marks))
	if err != nil {
		return "", fmt.Errorf("encoding the marks of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	version, err := p.patch(ctx, pod, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager, Force: new(true)})
	if err != nil {
		return "", fmt.Errorf("applying the marks of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return version, nil
}

// patch writes to the pod's status a body that names its UID, and returns the pod's
// resource version after it. The error is ErrGone where the pod is gone or a pod with
// another UID has its name.
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

// isOtherUID tells whether the API server refused the write because the object of the
// name has another UID. It takes the UID for an attempt to change it.
func isOtherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// replaced tells whether the name belongs to no pod or to another one. Where a pod is
// replaced during the write, the API server answers as to an update that lost a race.
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
