// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
)

// try asks the API server whether a pod can have the containers of the set: it creates one as a dry run, in
// the own namespace, whose pods no set selects. Only an answer about the pod's fields counts: quotas and
// policies of this namespace say nothing about those of the set.
func (c *Controller) try(ctx context.Context, set *v1alpha1.SidecarSet) ([]accept.Problem, error) {
	c.ledger.mu.Lock()
	known, found := c.ledger.tried[set.UID]
	c.ledger.mu.Unlock()
	if found && known.generation == set.Generation {
		return known.problems, nil
	}
	err := c.Client.Create(ctx, sample(set, c.Namespace), client.DryRunAll)
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("create a pod with the containers of SidecarSet %s as a dry run: %w", set.Name, err)
	}
	result := trial{generation: set.Generation, problems: invalid(err)}
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.ledger.tried[set.UID] = result
	for uid := range c.ledger.tried {
		if len(c.ledger.tried) <= 2*len(c.Sets.GetIndexer().ListKeys())+1 {
			break
		}
		delete(c.ledger.tried, uid) // Most of them are of sets that are gone.
	}
	return result.problems, nil
}

// invalid returns the fields that the API server refuses.
func invalid(err error) []accept.Problem {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
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
