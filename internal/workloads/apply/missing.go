// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// missing are the writes of a step that failed and on which others depend: these wait, and the others do not. A quota on
// claims, for example, does not keep pods whose update is done from becoming ready.
type missing struct {
	// revision is the name of the revision that could not be created, empty if there is none.
	revision string
	// claims are the names of the claims that could not be created, or could not become those of pods.
	claims sets.Set[string]
}

// permittedPatches returns the patches that can be executed: those that neither lead to the missing revision nor let a hook prepare
// a pod for it. The hook would take pods out of service for an update that cannot follow.
func (m *missing) permittedPatches(all []planning.PodPatch) []planning.PodPatch {
	if m.revision == "" {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(patch planning.PodPatch) bool {
		to := patch.Labels[appsv1.ControllerRevisionHashLabelKey]
		return to != nil && (*to == m.revision || *to == revision.Hash(m.revision)) || prepares(&patch)
	})
}

// prepares reports whether the patch begins the update or the deletion of a pod. Others have deleted a terminating pod.
func prepares(patch *planning.PodPatch) bool {
	state := ptr.Deref(patch.Labels[pub.LifecycleStateKey], "")
	return patch.Labels[pub.SpecifiedDeleteKey] != nil || state == string(pub.LifecycleStatePreparingUpdate) ||
		state == string(pub.LifecycleStatePreparingDelete) && !planning.Terminating(patch.Pod)
}

// permittedDeletes returns the deletions that can be executed: none while a revision is missing, because the replacements would have it,
// and otherwise those of pods whose claims follow them.
func (m *missing) permittedDeletes(all []planning.PodDelete) []planning.PodDelete {
	switch {
	case m.revision != "":
		return nil
	case len(m.claims) == 0:
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(d planning.PodDelete) bool { return m.uses(d.Pod) })
}

// permittedCreates returns the pods that can be created.
func (m *missing) permittedCreates(all []*corev1.Pod) []*corev1.Pod {
	if m.revision == "" && len(m.claims) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(pod *corev1.Pod) bool {
		return m.revision != "" && revision.Is(pod, m.revision) || m.uses(pod)
	})
}

// uses reports whether the pod uses a claim that is missing.
func (m *missing) uses(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && m.claims.Has(v.PersistentVolumeClaim.ClaimName)
	})
}
