// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setview gives the sets of all kinds one form, for what follows, restarts and undoes their rollouts, and explains them.
package setview

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

// View is a set of any kind.
type View struct {
	// Progress is how far its rollout is.
	Progress planning.Progress
	// Rules are what it demands of its pods. They have no time.
	Rules rollout.Rules
	// Selector selects its pods, and Template is their template.
	Selector *metav1.LabelSelector
	Template *corev1.PodTemplateSpec
	// InPlace reports whether it updates pods in place if that is possible, and InPlaceOnly whether it does not recreate them if
	// it is not.
	InPlace, InPlaceOnly bool
	// Limit is the path of the field that can keep pods at an earlier revision while the strategy updates others.
	Limit string
	// ConditionSeverity returns the severity of a condition of it.
	ConditionSeverity func(c *metav1.Condition) planning.Severity

	// notReady is what the condition Ready says if the counts may be those of a complete rollout although pods are outdated. It is
	// nil if the counts are enough.
	notReady *rollout.State
}

// State returns where its rollout is by its status, for all who do not plan its steps.
func (v *View) State() rollout.State {
	state := rollout.Decide(&v.Progress, 0)
	if state.Phase == rollout.Complete && v.notReady != nil {
		return *v.notReady
	}
	return state
}

// Of returns the view of a set. It returns false for an object of another kind.
func Of(object any) (View, bool) {
	switch set := object.(type) {
	case *v1alpha1.CloneSet:
		kind := set.Spec.UpdateStrategy.Type
		only := kind == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
		return View{
			Progress: cloneset.Progress(set, &set.Status), Selector: set.Spec.Selector, Template: &set.Spec.Template,
			Rules:   rollout.Rules{MinReady: seconds(set.Spec.MinReadySeconds), Hooks: set.Spec.Lifecycle},
			InPlace: only || kind == v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, InPlaceOnly: only,
			Limit:             "spec.updateStrategy.partition",
			ConditionSeverity: cloneset.ConditionSeverity,
		}, true
	case *v1beta1.StatefulSet:
		update := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateStatefulSetStrategy{})
		only := update.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdateStrategyType
		progress := statefulset.Progress(set, &set.Status)
		return View{
			Progress: progress, Selector: set.Spec.Selector, Template: &set.Spec.Template,
			Rules:   rollout.Rules{MinReady: seconds(ptr.Deref(update.MinReadySeconds, 0)), Hooks: set.Spec.Lifecycle},
			InPlace: only || update.PodUpdatePolicy == v1beta1.InPlaceIfPossiblePodUpdateStrategyType, InPlaceOnly: only,
			Limit:             "spec.updateStrategy.rollingUpdate.partition",
			ConditionSeverity: statefulset.ConditionSeverity, notReady: notReady(set, &progress),
		}, true
	case *v1alpha1.DaemonSet:
		update := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, v1alpha1.RollingUpdateDaemonSet{})
		limit := "spec.updateStrategy.rollingUpdate.partition"
		if update.Selector != nil {
			limit += " or selector"
		}
		return View{
			Progress: daemonset.Progress(set, &set.Status), Selector: set.Spec.Selector, Template: &set.Spec.Template,
			Rules:   rollout.Rules{MinReady: seconds(set.Spec.MinReadySeconds), Hooks: set.Spec.Lifecycle},
			InPlace: update.Type == v1alpha1.InplaceRollingUpdateType, Limit: limit, ConditionSeverity: daemonset.ConditionSeverity,
		}, true
	}
	return View{}, false
}

// notReady returns what the condition Ready of a StatefulSet says if it matters, and nil otherwise. The counts do not say which pods
// have the update revision: those below the partition may have it while others do not. Seamark's controller writes the condition
// together with the counts; that of OpenKruise removes it when a count changes.
func notReady(set *v1beta1.StatefulSet, p *planning.Progress) *rollout.State {
	if p.Target == 0 || p.Updated >= p.Desired {
		return nil // No pod is to be updated, or all are.
	}
	for _, c := range set.Status.Conditions {
		if c.Type != v1alpha1.ConditionReady || c.Status != corev1.ConditionFalse {
			continue
		}
		if state, ok := rollout.Stored(c.Reason, c.Message); ok {
			return &state
		}
	}
	return nil
}

// seconds returns a number of seconds. The schemas of the kinds limit it to 2147483647.
func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
