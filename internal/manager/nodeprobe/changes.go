// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// planChange is what a new plan of a node changes for one pod.
type planChange struct {
	// pod is namespace/name.
	pod string
	uid string
	// probes is the number of the pod's probes in the new plan; zero means that the pod was
	// removed.
	probes int
}

// changes returns the pods whose part of the plan differs: first those that were removed, then
// the others in the order of the plan.
func changes(before, after []v1alpha1.PodProbe) []planChange {
	earlier := make(map[string]*v1alpha1.PodProbe, len(before))
	for i := range before {
		earlier[before[i].UID] = &before[i]
	}
	var stayed []planChange
	for i := range after {
		pod := &after[i]
		if was := earlier[pod.UID]; was == nil || !equality.Semantic.DeepEqual(was, pod) {
			stayed = append(stayed, planChange{pod: pod.Namespace + "/" + pod.Name, uid: pod.UID, probes: len(pod.Probes)})
		}
		delete(earlier, pod.UID)
	}
	var all []planChange
	for i := range before {
		if pod := &before[i]; earlier[pod.UID] != nil {
			all = append(all, planChange{pod: pod.Namespace + "/" + pod.Name, uid: pod.UID})
		}
	}
	return append(all, stayed...)
}

// logChanges logs what a new plan changes for each pod, at the level of writes.
func logChanges(ctx context.Context, before, after []v1alpha1.PodProbe) {
	lines := log.FromContext(ctx).V(logging.Writes)
	if !lines.Enabled() {
		return
	}
	for _, c := range changes(before, after) {
		if c.probes == 0 {
			lines.Info("Unplanned pod", "pod", c.pod, "podUID", c.uid)
		} else {
			lines.Info("Planned pod", "pod", c.pod, "podUID", c.uid, "probes", c.probes)
		}
	}
}
