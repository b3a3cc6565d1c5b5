// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

const (
	// slicePods is the number of pods in a ProbeReport.
	slicePods = 8
	// reporter is the field manager of the agents.
	reporter = "seamark-agent"
)

// agents act as the agents of all nodes.
type agents struct {
	*cluster
	// rounds is the number of reports about each pod so far.
	rounds int
}

// report reports a different state of all probes of all nodes, and waits until every pod has the
// label of the state.
func (a *agents) report(ctx context.Context) error {
	a.rounds++
	state, value := v1alpha1.ProbeSucceeded, "up"
	if a.rounds%2 == 0 {
		state, value = v1alpha1.ProbeFailed, "down"
	}
	err := harness.Each(ctx, a.nodes, clients, func(ctx context.Context, i int) error {
		plan := &v1alpha1.NodePodProbe{}
		if err := a.Client.Get(ctx, client.ObjectKey{Name: nodeName(i)}, plan); err != nil {
			return fmt.Errorf("get plan of %s: %w", nodeName(i), err)
		}
		return a.reportNode(ctx, plan, state)
	})
	if err != nil {
		return err
	}
	return a.marked(ctx, value)
}

// reportNode writes the slices of a node and, at first, that its plan is in force.
func (a *agents) reportNode(ctx context.Context, plan *v1alpha1.NodePodProbe, state v1alpha1.ProbeState) error {
	var pods []seamarkv1alpha1.PodReport
	for i := range plan.Spec.PodProbes {
		pods = append(pods, a.states(&plan.Spec.PodProbes[i], state))
	}
	for n := 0; n*slicePods < len(pods); n++ {
		slice := &seamarkv1alpha1.ProbeReport{
			ObjectMeta: metav1.ObjectMeta{Name: plan.Name + "." + strconv.Itoa(n), OwnerReferences: plan.OwnerReferences},
			NodeName:   plan.Name, Pods: pods[n*slicePods : min(len(pods), (n+1)*slicePods)],
		}
		if err := a.writeSlice(ctx, slice); err != nil {
			return fmt.Errorf("write slice %s: %w", slice.Name, err)
		}
	}
	if plan.Status.ObservedGeneration == plan.Generation {
		return nil
	}
	body := fmt.Sprintf(`{"status":{"observedGeneration":%d,"pods":%d,"probes":%[2]d,"probeReports":true}}`, plan.Generation, len(pods))
	if err := a.Client.Status().Patch(ctx, plan, client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner(reporter)); err != nil {
		return fmt.Errorf("write plan in force of %s: %w", plan.Name, err)
	}
	return nil
}

// states returns the entry of a pod.
func (a *agents) states(pod *v1alpha1.PodProbe, state v1alpha1.ProbeState) seamarkv1alpha1.PodReport {
	now := metav1.Now()
	entry := seamarkv1alpha1.PodReport{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	for _, probe := range pod.Probes {
		entry.Probes = append(entry.Probes, v1alpha1.ContainerProbeState{
			Name: probe.Name, Plan: probe.Plan, ContainerID: "0123456789abc", State: state,
			LastProbeTime: now, LastTransitionTime: now, Message: "3 of 16 players are connected",
		})
	}
	return entry
}

// writeSlice replaces the slice, or creates it if it does not exist.
func (a *agents) writeSlice(ctx context.Context, slice *seamarkv1alpha1.ProbeReport) error {
	if a.rounds == 1 {
		return a.Client.Create(ctx, slice, client.FieldOwner(reporter)) //nolint:wrapcheck // the caller wraps it
	}
	body, err := json.Marshal(map[string]any{"pods": slice.Pods})
	if err != nil {
		return err //nolint:wrapcheck // the caller wraps it
	}
	answer := &metav1.PartialObjectMetadata{}
	answer.SetGroupVersionKind(seamarkv1alpha1.GroupVersion().WithKind("ProbeReport"))
	answer.Name = slice.Name
	return a.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, body), client.FieldOwner(reporter)) //nolint:wrapcheck // the caller wraps it
}

// marked waits until every pod has the label. It asks for one pod that does not have it, which
// costs the API server little.
func (a *agents) marked(ctx context.Context, value string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	for {
		rest := &metav1.PartialObjectMetadataList{}
		rest.SetGroupVersionKind(podList())
		err := a.Client.List(ctx, rest, client.InNamespace(namespace), client.Limit(1), unmarked(value))
		switch {
		case err != nil && !apierrors.IsTimeout(err):
			return fmt.Errorf("list pods without the mark: %w", err)
		case err == nil && len(rest.Items) == 0:
			return nil
		}
		if err := harness.Idle(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
