// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// templateGenerationLabel is the label of pods with the generation of the template, which a set has as an annotation if
// an earlier controller wrote it.
const templateGenerationLabel = "pod-template-generation"

// config is what the slots of a set depend on besides pods, nodes and time.
type config struct {
	fit *nodefit.Template
	// selector selects the pods, and reach the nodes that the update reaches.
	selector, reach labels.Selector
	// revision is the name of the update revision, and templateGeneration the label of its pods, empty if they have none.
	revision, templateGeneration string
	minReady                     time.Duration
	preDelete                    *pub.LifecycleHook
	// rolling reports whether old pods are updated, surge whether new pods are created next to them, exempt whether
	// unreachable nodes do not use up maxUnavailable, and partitioned whether partition also limits the creation of pods.
	rolling, surge, exempt, partitioned bool
}

// configure returns the configuration of the set with the update revision.
func configure(set *v1alpha1.DaemonSet, selector labels.Selector, update string) (*config, error) {
	c := &config{
		selector: selector, reach: labels.Everything(), revision: update,
		templateGeneration: set.Annotations[appsv1.DeprecatedTemplateGeneration],
		minReady:           time.Duration(set.Spec.MinReadySeconds) * time.Second,
		preDelete:          ptr.Deref(set.Spec.Lifecycle, pub.Lifecycle{}).PreDelete,
		rolling:            set.Spec.UpdateStrategy.Type != v1alpha1.OnDeleteDaemonSetStrategyType,
		exempt:             set.Annotations[v1alpha1.ExemptUnreachableNodesKey] == "true",
		partitioned: ptr.Deref(set.Spec.ScaleStrategy, v1alpha1.DaemonSetScaleStrategy{}).PartitionedScaling ||
			set.Annotations[v1alpha1.ProgressiveCreatePodKey] == "true",
	}
	_, surge := budgets(set, 1)
	c.surge = c.rolling && surge > 0
	var err error
	if reach := rolling(set).Selector; c.rolling && reach != nil {
		if c.reach, err = metav1.LabelSelectorAsSelector(reach); err != nil {
			return nil, fmt.Errorf("spec.updateStrategy.rollingUpdate.selector: %w", err)
		}
	}
	c.fit, err = nodefit.Compile(&set.Spec.Template.Spec)
	return c, err
}

// updated reports whether the pod is of the update revision.
func (c *config) updated(pod *corev1.Pod) bool {
	return revision.Is(pod, c.revision) || c.templateGeneration != "" && pod.Labels[templateGenerationLabel] == c.templateGeneration
}

// node returns what the node is for the set.
func (c *config) node(node *corev1.Node) nodeFacts {
	facts := nodeFacts{exists: true, fit: c.fit.Node(node), reached: c.reach.Matches(labels.Set(node.Labels)), joins: nodefit.Joins(node)}
	for i := range node.Spec.Taints {
		facts.unreachable = facts.unreachable || node.Spec.Taints[i].Key == corev1.TaintNodeUnreachable
	}
	return facts
}

// ignores reports whether the node does not use up maxUnavailable whatever its pods are.
func (c *config) ignores(facts nodeFacts) bool { return facts.joins || c.exempt && facts.unreachable }

// rolling returns the parameters of the update, which may be unset.
func rolling(set *v1alpha1.DaemonSet) v1alpha1.RollingUpdateDaemonSet {
	return ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, v1alpha1.RollingUpdateDaemonSet{})
}

// inPlace reports whether pods may be updated in place.
func inPlace(set *v1alpha1.DaemonSet) bool {
	return rolling(set).Type == v1alpha1.InplaceRollingUpdateType
}

// budgets returns maxUnavailable and maxSurge of a set with so many nodes. One of them is 0.
func budgets(set *v1alpha1.DaemonSet, nodes int) (unavailable, surge int) {
	update := rolling(set)
	if update.MaxSurge == nil && update.Type == v1alpha1.SurgingRollingUpdateType {
		update.MaxSurge = new(intstr.FromInt32(1))
	}
	if surge = scaled(update.MaxSurge, nodes); surge > 0 {
		return 0, surge
	}
	// At least one, as otherwise nothing would be updated.
	return max(scaled(update.MaxUnavailable, nodes), 1), 0
}

// defaultBurst is the default of burstReplicas.
const defaultBurst = 250

// burst returns how many pods a step of a set with so many nodes creates and deletes at most. A percentage is rounded down,
// as in OpenKruise, but to 1 at least, as otherwise nothing would be created.
func burst(set *v1alpha1.DaemonSet, nodes int) int {
	value := cmp.Or(set.Spec.BurstReplicas, new(intstr.FromInt32(defaultBurst)))
	number, err := intstr.GetScaledValueFromIntOrPercent(value, nodes, false)
	if err != nil {
		return 1 // The schema does not permit such a value.
	}
	return min(max(number, 1), planning.MostCreates)
}

// scaled returns the value, of which a percentage is one of total and rounded up. It is 0 if the value is nil.
func scaled(value *intstr.IntOrString, total int) int {
	if value == nil {
		return 0
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(value, total, true)
	if err != nil {
		return 0 // The schema does not permit such a value.
	}
	return number
}
