// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// reportedPods is the field `pods` of a ProbeReport in managedFields.
const reportedPods = `{"f:pods":{}}`

// TrimReport returns a ProbeReport with only what marks, the conditions of markers and metrics are
// built from, and what ChangedByOthers reads.
func TrimReport(report *seamarkv1alpha1.ProbeReport) *seamarkv1alpha1.ProbeReport {
	name, uid := pack(report.Name, string(report.UID))
	trimmed := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uid), ResourceVersion: report.ResourceVersion,
			ManagedFields: otherWriters(report.ManagedFields),
		},
		NodeName: intern(report.NodeName),
	}
	if len(report.Pods) == 0 {
		return trimmed
	}
	probes := 0
	for i := range report.Pods {
		probes += len(report.Pods[i].Probes)
	}
	// All states of a slice are in one array.
	states := make([]v1alpha1.ContainerProbeState, 0, probes)
	trimmed.Pods = make([]seamarkv1alpha1.PodReport, 0, len(report.Pods))
	for i := range report.Pods {
		pod := &report.Pods[i]
		first := len(states)
		for _, state := range pod.Probes {
			state.Name, state.State, state.Plan = intern(state.Name), intern(state.State), intern(state.Plan)
			// Only the agent reads it.
			state.ContainerID = ""
			states = append(states, state)
		}
		podName, podUID := pack(pod.Name, pod.UID)
		small := seamarkv1alpha1.PodReport{Namespace: intern(pod.Namespace), Name: podName, UID: podUID, Errors: pod.Errors}
		if len(states) > first {
			small.Probes = slices.Clip(states[first:])
		}
		trimmed.Pods = append(trimmed.Pods, small)
	}
	return trimmed
}

// ChangedByOthers reports whether another client than the agent has set the pods of the
// ProbeReport, and the agent has not replaced them since. A list has one owner, the last writer,
// except that an apply of equal pods adds an owner.
func ChangedByOthers(report *seamarkv1alpha1.ProbeReport) bool {
	return len(otherWriters(report.ManagedFields)) > 0
}

// otherWriters returns the entries of the managers that own the pods, except the agent's. They
// have only the manager and the field.
func otherWriters(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var others []metav1.ManagedFieldsEntry
	for i := range managed {
		if e := &managed[i]; e.Manager != v1alpha1.AgentFieldManager && ownsPods(e) {
			others = append(others, metav1.ManagedFieldsEntry{Manager: e.Manager, FieldsV1: metav1.NewFieldsV1(reportedPods)})
		}
	}
	return others
}

func ownsPods(entry *metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var owned struct {
		Pods *struct{} `json:"f:pods"`
	}
	// Invalid fields are no reason to disturb the agent.
	return json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) == nil && owned.Pods != nil
}
