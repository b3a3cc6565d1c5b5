// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
)

const (
	// tries is the number of dry runs of a generation, and tryDelay the time after the first one, which doubles.
	tries    = 5
	tryDelay = 500 * time.Millisecond
)

// trial is what the API server says about the pods of a generation.
type trial struct {
	generation int64
	problems   []accept.Problem
	// unknown is the number of answers that say nothing about the containers, note the last one, and next when the
	// API server is asked again.
	unknown int
	note    string
	next    time.Time
}

// isOpen reports whether the API server must be asked again.
func (t *trial) isOpen() bool { return t.note != "" && t.unknown < tries }

// answered returns the trial after an answer, or an error if there was none.
func (t *trial) answered(err error, now time.Time) (trial, error) {
	after := trial{generation: t.generation, problems: invalid(err)}
	switch {
	case err == nil || len(after.problems) > 0:
		return after, nil
	case !isAnswer(err):
		return *t, err
	default:
		after.unknown, after.note = t.unknown+1, err.Error()
		after.next = now.Add(tryDelay << t.unknown)
		return after, nil
	}
}

// try asks the API server whether a pod can have the containers of the set: it creates one as a dry run, in
// the own namespace, whose pods no set selects. Only an answer about the pod's fields counts: quotas, policies and
// webhooks of this namespace say nothing about those of the set. A webhook that fails may work again: the duration
// is the time until the next try, or zero.
func (c *Controller) try(ctx context.Context, set *v1alpha1.SidecarSet) (trial, time.Duration, error) {
	c.ledger.mu.Lock()
	last, found := c.ledger.tried[set.UID]
	c.ledger.mu.Unlock()
	if !found || last.generation != set.Generation {
		last = trial{generation: set.Generation}
	} else if !last.isOpen() {
		return last, 0, nil
	}
	if wait := last.next.Sub(c.Now()); wait > 0 {
		return last, wait, nil
	}
	result, err := last.answered(c.Client.Create(ctx, sample(set, c.Namespace), client.DryRunAll), c.Now())
	if err != nil {
		return trial{}, 0, fmt.Errorf("create a pod with the containers of SidecarSet %s as a dry run: %w", set.Name, err)
	}
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.ledger.tried[set.UID] = result
	for uid := range c.ledger.tried {
		if len(c.ledger.tried) <= 2*len(c.Sets.GetIndexer().ListKeys())+1 {
			break
		}
		delete(c.ledger.tried, uid) // Most of them are of sets that are gone.
	}
	if result.isOpen() {
		return result, result.next.Sub(c.Now()), nil
	}
	return result, 0, nil
}

// invalid returns the fields that the API server refuses.
func invalid(err error) []accept.Problem {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var problems []accept.Problem
	for _, cause := range status.Status().Details.Causes {
		// Admission policies name no field of the pod.
		if strings.HasPrefix(cause.Field, "spec.") {
			problems = append(problems, accept.Problem{Reason: accept.InvalidContainer, Field: cause.Field, Message: cause.Message})
		}
	}
	return problems
}

// isAnswer reports whether admission has answered, and not only an API server that is busy, or cannot be reached.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return true
	default:
		// Webhooks choose the status with which they deny.
		return strings.Contains(err.Error(), "webhook")
	}
}

// sample returns a pod whose containers have the positions that they have in the set, so that the paths of
// fields are the same.
func sample(set *v1alpha1.SidecarSet, namespace string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "seamark-sidecarset-"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false), ImagePullSecrets: set.Spec.ImagePullSecrets,
		},
	}
	volumes := sets.New[string]()
	for i := range set.Spec.Volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, *set.Spec.Volumes[i].DeepCopy())
		volumes.Insert(set.Spec.Volumes[i].Name)
	}
	// The set may mount volumes of the pods that it selects.
	add := func(name string, source corev1.VolumeSource) {
		if !volumes.Has(name) {
			volumes.Insert(name)
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		}
	}
	build := func(from []v1alpha1.SidecarContainer) []corev1.Container {
		var containers []corev1.Container
		for i := range from {
			containers = append(containers, *from[i].Container.DeepCopy())
			for _, mount := range from[i].VolumeMounts {
				add(mount.Name, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
			}
			for _, device := range from[i].VolumeDevices {
				add(device.Name, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "sample"}})
			}
		}
		return containers
	}
	pod.Spec.InitContainers, pod.Spec.Containers = build(set.Spec.InitContainers), build(set.Spec.Containers)
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "seamark-sample", Image: "sample"}}
	}
	return pod
}
