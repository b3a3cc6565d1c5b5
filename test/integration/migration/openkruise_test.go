// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// openKruise writes the objects of OpenKruise's controllers as they do: with updates, and with
// their user agents, from which the API server derives the field managers.
type openKruise struct {
	*world
	manager, daemon client.Client
}

func newOpenKruise(w *world) *openKruise {
	w.Helper()
	as := func(userAgent string) client.Client {
		config := rest.CopyConfig(w.Config)
		config.UserAgent = userAgent
		return w.ClientOf(w, config)
	}
	return &openKruise{world: w, manager: as("kruise-manager/NodePodProbe-controller"), daemon: as("kruise-daemon-podprobe")}
}

// follows adds the finalizer to the marker and sets its status.
func (k *openKruise) follows(ctx context.Context, marker *v1alpha1.PodProbeMarker, pods int64) {
	k.Helper()
	controllerutil.AddFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer)
	k.Must(k.manager.Update(ctx, marker))
	marker.Status.ObservedGeneration, marker.Status.MatchedPods = marker.Generation, pods
	k.Must(k.manager.Status().Update(ctx, marker))
}

// plans creates the node's NodePodProbe, without an owner, and adds the marker's probes for
// each pod. Fields that the marker leaves unset stay unset.
func (k *openKruise) plans(ctx context.Context, marker *v1alpha1.PodProbeMarker, pods ...*corev1.Pod) *v1alpha1.NodePodProbe {
	k.Helper()
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: k.node}}
	k.Must(k.manager.Create(ctx, npp))
	for _, pod := range pods {
		planned := v1alpha1.PodProbe{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), IP: pod.Status.PodIP}
		for _, probe := range marker.Spec.Probes {
			planned.Probes = append(planned.Probes, v1alpha1.ContainerProbe{
				Name: marker.Name + "#" + probe.Name, ContainerName: probe.ContainerName, Probe: probe.Probe,
			})
		}
		npp.Spec.PodProbes = append(npp.Spec.PodProbes, planned)
	}
	k.Must(k.manager.Update(ctx, npp))
	return npp
}

// reports adds a pod's states to the status as the daemon does. A missing time of the last
// probe represents a version of the daemon that did not write it.
func (k *openKruise) reports(ctx context.Context, npp *v1alpha1.NodePodProbe, pod *corev1.Pod, states ...v1alpha1.ContainerProbeState) {
	k.Helper()
	npp.Status.PodProbeStatuses = append(npp.Status.PodProbeStatuses, v1alpha1.PodProbeStatus{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), ProbeStates: states,
	})
	k.Must(k.daemon.Status().Update(ctx, npp))
}

func state(name string, state v1alpha1.ProbeState) v1alpha1.ContainerProbeState {
	changed := metav1.NewTime(time.Now().Add(-10 * time.Minute).Truncate(time.Second))
	return v1alpha1.ContainerProbeState{Name: name, State: state, LastProbeTime: changed, LastTransitionTime: changed}
}

// marks updates the pod's status with all marks at once.
func (k *openKruise) marks(ctx context.Context, pod *corev1.Pod, labels, annotations map[string]string, idle corev1.ConditionStatus) {
	k.Helper()
	k.Get(pod)
	for key, value := range labels {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
	}
	if idle != "" {
		changed := metav1.NewTime(time.Now().Add(-10 * time.Minute).Truncate(time.Second))
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: "game.io/idle", Status: idle, LastProbeTime: changed, LastTransitionTime: changed,
		})
	}
	k.Must(k.manager.Status().Update(ctx, pod))
}

// createPod creates a running pod on the node.
func (k *openKruise) createPod(ctx context.Context, name string) *corev1.Pod {
	k.Helper()
	pod, err := env.CreatePod(ctx, k.Client, builders.Pod(k.Namespace, name).Label("app", "game").Node(k.node).Build())
	k.Must(err)
	k.run(pod)
	return pod
}
