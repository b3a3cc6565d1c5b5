// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trim reduces the objects in the cache of seamark-workloads to what the planners and the executor read.
package trim

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
)

// Func returns the transformation of a cache that keeps what trim returns.
func Func[T any](trim func(T) T) toolscache.TransformFunc {
	return func(object any) (any, error) {
		typed, ok := object.(T)
		if !ok {
			return nil, fmt.Errorf("cache a %T: want a %T", object, typed)
		}
		return trim(typed), nil
	}
}

// keptAnnotations are the prefixes of the annotations of pods that planners read.
func keptAnnotations() []string {
	return []string{"apps.kruise.io/", "lifecycle.apps.kruise.io/", "seamark.dev/", "controller.kubernetes.io/"}
}

// isOurs reports whether the object has no controller, or a set of this program.
func isOurs(object metav1.Object, kinds []schema.GroupKind) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller == nil || slices.Contains(kinds, owner.Named(object, controller).GroupKind)
}

// Pod returns a function that returns a pod with only the fields that the planners and the executor read. Of a pod that
// another controller than a set of the kinds owns it keeps what identifies it.
func Pod(kinds []schema.GroupKind) func(*corev1.Pod) *corev1.Pod { return pod(kinds, false) }

// PodWithSidecars is like Pod. It also keeps the labels and the phase of each pod, and what the planners read of a
// pod that has containers of SidecarSets.
func PodWithSidecars(kinds []schema.GroupKind) func(*corev1.Pod) *corev1.Pod { return pod(kinds, true) }

func pod(kinds []schema.GroupKind, sidecarSets bool) func(*corev1.Pod) *corev1.Pod {
	return func(pod *corev1.Pod) *corev1.Pod {
		kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Generation: pod.Generation, OwnerReferences: pod.OwnerReferences,
		}}
		injected := sidecarSets && pod.Annotations[v1alpha1.SidecarSetListKey] != ""
		if sidecarSets {
			kept.Labels, kept.DeletionTimestamp, kept.Status.Phase = pod.Labels, pod.DeletionTimestamp, pod.Status.Phase
		}
		if !injected && !isOurs(pod, kinds) {
			return kept
		}
		kept.Labels, kept.Finalizers = pod.Labels, pod.Finalizers
		kept.Annotations = annotations(pod.Annotations)
		kept.CreationTimestamp, kept.DeletionTimestamp = pod.CreationTimestamp, pod.DeletionTimestamp
		kept.Spec = corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			Resources:      pod.Spec.Resources,
			ReadinessGates: pod.Spec.ReadinessGates,
			Containers:     containers(pod.Spec.Containers),
			InitContainers: containers(pod.Spec.InitContainers),
			Volumes:        volumes(pod.Spec.Volumes),

			TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		}
		if required := nodefit.Required(pod.Spec.Affinity); required != nil && pod.Spec.NodeName == "" {
			// The node to which a pod of a DaemonSet is bound.
			kept.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		}
		kept.Status = corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, QOSClass: pod.Status.QOSClass, ObservedGeneration: pod.Status.ObservedGeneration,
			Conditions: pod.Status.Conditions, ContainerStatuses: statuses(pod.Status.ContainerStatuses),
		}
		if injected {
			// Sets merge into any annotation, and update native sidecars.
			kept.Annotations = pod.Annotations
			kept.Status.InitContainerStatuses = statuses(pod.Status.InitContainerStatuses)
		}
		return kept
	}
}

func annotations(all map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range all {
		if !slices.ContainsFunc(keptAnnotations(), func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			continue
		}
		if kept == nil {
			kept = make(map[string]string)
		}
		kept[key] = value
	}
	return kept
}

func containers(all []corev1.Container) []corev1.Container {
	if len(all) == 0 {
		return nil
	}
	kept := make([]corev1.Container, len(all))
	for i := range all {
		c := &all[i]
		kept[i] = corev1.Container{
			Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy,
			ResizePolicy: c.ResizePolicy, Env: environment(c.Env),
		}
	}
	return kept
}

// environment keeps the variables that are read from the pod's labels, annotations and resources,
// and those with the launch priority of the container.
func environment(variables []corev1.EnvVar) []corev1.EnvVar {
	var kept []corev1.EnvVar
	for i := range variables {
		name, from := variables[i].Name, variables[i].ValueFrom
		if from != nil && (from.FieldRef != nil || from.ResourceFieldRef != nil) ||
			name == pub.ContainerLaunchPriorityEnv || name == pub.ContainerLaunchBarrierEnv {
			kept = append(kept, variables[i])
		}
	}
	return kept
}

// started keeps when a container was started.
func started(state corev1.ContainerState) corev1.ContainerState {
	kept := corev1.ContainerState{}
	if state.Running != nil {
		kept.Running = &corev1.ContainerStateRunning{StartedAt: state.Running.StartedAt}
	}
	if state.Terminated != nil {
		kept.Terminated = &corev1.ContainerStateTerminated{StartedAt: state.Terminated.StartedAt}
	}
	return kept
}

func statuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(all) == 0 {
		return nil
	}
	kept := make([]corev1.ContainerStatus, len(all))
	for i := range all {
		s := &all[i]
		kept[i] = corev1.ContainerStatus{
			Name: s.Name, Image: s.Image, ImageID: s.ImageID, ContainerID: s.ContainerID, Ready: s.Ready,
			State: started(s.State), LastTerminationState: started(s.LastTerminationState),
			RestartCount: s.RestartCount, Resources: s.Resources,
		}
	}
	return kept
}

// volumes keeps the volumes of claims.
func volumes(all []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range all {
		if claim := all[i].PersistentVolumeClaim; claim != nil {
			kept = append(kept, corev1.Volume{
				Name: all[i].Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim},
			})
		}
	}
	return kept
}

// Revision returns a function that drops the content of the revisions of other controllers than
// sets of the kinds. Revisions of sets are updated as a whole.
func Revision(kinds []schema.GroupKind) func(*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	return func(revision *appsv1.ControllerRevision) *appsv1.ControllerRevision {
		revision.ManagedFields = nil
		if isOurs(revision, kinds) {
			return revision
		}
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Name: revision.Name, Namespace: revision.Namespace, UID: revision.UID,
			ResourceVersion: revision.ResourceVersion, OwnerReferences: revision.OwnerReferences,
		}}
	}
}

// Namespace keeps the labels of a namespace.
func Namespace(namespace *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	namespace.ManagedFields, namespace.Annotations, namespace.OwnerReferences = nil, nil, nil
	return namespace
}

// Node keeps of a node what decides which pods it runs: its name, labels and taints, its creation and deletion, and whether
// and since when it is ready and has free disk space. A node of a cluster has more than 10 KiB, most of it images and addresses.
func Node(node *corev1.Node) *corev1.Node {
	kept := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			CreationTimestamp: node.CreationTimestamp, DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable},
	}
	for _, taint := range node.Spec.Taints {
		kept.Spec.Taints = append(kept.Spec.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady || condition.Type == corev1.NodeDiskPressure {
			kept.Status.Conditions = append(kept.Status.Conditions, corev1.NodeCondition{
				Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime,
			})
		}
	}
	return kept
}
