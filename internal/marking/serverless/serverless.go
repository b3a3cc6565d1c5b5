// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverless computes the two annotations that pass a pod's probes to the provider of its
// virtual node. The provider runs the probes and writes the pod conditions that they declare. The
// package is pure: the annotations depend only on the pod and the markers.
//
// Invariants:
//   - The same pod and markers, in any order, give the same bytes.
//   - A condition type belongs to one probe: the first that declares it, by marker name and probe
//     order.
//   - The annotations contain the probes as in the marker: unset fields remain unset and port names
//     remain names, so that the provider's defaults apply.
package serverless

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// The reasons why a provider does not get a probe that an agent would get.
const (
	// ConditionTypeMissing means that the probe has no podConditionType, which a provider needs
	// to report the result.
	ConditionTypeMissing plan.Reason = "ConditionTypeMissing"
	// ConditionTypeTaken means that an earlier probe has the same podConditionType.
	ConditionTypeTaken plan.Reason = "ConditionTypeTaken"
	// MillisecondsUnsupported means that the probe has periodMilliseconds or timeoutMilliseconds,
	// which providers do not know: they would run it by the seconds.
	MillisecondsUnsupported plan.Reason = "MillisecondsUnsupported"
	// StartupPolicyUnsupported means that the probe has startupPolicy WaitForStarted, which
	// providers do not know: they would run it at once.
	StartupPolicyUnsupported plan.Reason = "StartupPolicyUnsupported"
)

// Reasons returns the reasons of this package.
func Reasons() []plan.Reason {
	return []plan.Reason{ConditionTypeMissing, ConditionTypeTaken, MillisecondsUnsupported, StartupPolicyUnsupported}
}

// Annotations are the values of the two annotations. A pod has both, or neither if they are empty.
type Annotations struct {
	// Probes is the value of v1alpha1.PodProbeMarkerAnnotationKey.
	Probes string
	// Markers is the value of v1alpha1.PodProbeMarkerListAnnotationKey.
	Markers string
}

// AnnotationsOf returns the annotations of the pod.
func AnnotationsOf(pod *corev1.Pod) Annotations {
	return Annotations{
		Probes:  pod.Annotations[v1alpha1.PodProbeMarkerAnnotationKey],
		Markers: pod.Annotations[v1alpha1.PodProbeMarkerListAnnotationKey],
	}
}

// Names returns the names of the markers that the annotations list.
func (a Annotations) Names() []string {
	if a.Markers == "" {
		return nil
	}
	return strings.Split(a.Markers, ",")
}

// Size returns the size of the annotations in bytes, as the API server counts it for the limit of
// an object's annotations.
func (a Annotations) Size() int {
	if a == (Annotations{}) {
		return 0
	}
	return len(v1alpha1.PodProbeMarkerAnnotationKey) + len(a.Probes) +
		len(v1alpha1.PodProbeMarkerListAnnotationKey) + len(a.Markers)
}

// Compile returns the probes that a provider runs in the pod, ordered by marker name and by probe
// order in the marker, and those that cannot run. It checks neither the pod's node nor its state.
// The defaults do not affect the annotations.
func Compile(pod *corev1.Pod, markers []*plan.Marker, defaults plan.Defaults) plan.PodPlan {
	selected := plan.Selected(pod, markers, defaults)
	compiled := plan.PodPlan{Problems: selected.Problems, Excess: selected.Excess}
	taken := make(map[string]bool, len(selected.Probes))
	for _, probe := range selected.Probes {
		conditionType := probe.Source.PodConditionType
		switch {
		case conditionType == "":
			compiled.Problems = append(compiled.Problems, problem(pod, probe, ConditionTypeMissing))
		case taken[conditionType]:
			compiled.Problems = append(compiled.Problems, problem(pod, probe, ConditionTypeTaken))
		case probe.Plan.Probe.PeriodMilliseconds != 0 || probe.Plan.Probe.TimeoutMilliseconds != 0:
			compiled.Problems = append(compiled.Problems, problem(pod, probe, MillisecondsUnsupported))
		case probe.Source.StartupPolicy == v1alpha1.StartupWait:
			compiled.Problems = append(compiled.Problems, problem(pod, probe, StartupPolicyUnsupported))
		default:
			taken[conditionType] = true
			compiled.Probes = append(compiled.Probes, probe)
		}
	}
	return compiled
}

func problem(pod *corev1.Pod, probe plan.PlannedProbe, reason plan.Reason) plan.Problem {
	return plan.Problem{
		ID: probe.ID, Namespace: pod.Namespace, Pod: pod.Name, Container: probe.Source.ContainerName, Reason: reason,
	}
}

// Encode returns the annotations for the probes that Compile returned.
func Encode(probes []plan.PlannedProbe) (Annotations, error) {
	if len(probes) == 0 {
		return Annotations{}, nil
	}
	sources := make([]v1alpha1.PodContainerProbe, 0, len(probes))
	var markers []string
	for _, probe := range probes {
		source := *probe.Source
		// Providers do not know them.
		source.MarkerPolicy, source.StaleAfterSeconds, source.StartupPolicy = nil, nil, ""
		sources = append(sources, source)
		if !slices.Contains(markers, probe.ID.Marker) {
			markers = append(markers, probe.ID.Marker)
		}
	}
	encoded, err := json.Marshal(sources)
	if err != nil {
		return Annotations{}, fmt.Errorf("encode probes for provider: %w", err)
	}
	return Annotations{Probes: string(encoded), Markers: strings.Join(markers, ",")}, nil
}

// NodeLabel is a label by which nodes without agents are recognized.
type NodeLabel struct {
	// Key is the key of the label.
	Key string
	// Values are the values that identify such nodes. If it is empty, any value does.
	Values []string
}

func (l NodeLabel) matches(nodeLabels map[string]string) bool {
	value, found := nodeLabels[l.Key]
	return found && (len(l.Values) == 0 || slices.Contains(l.Values, value))
}

// AgentlessLabels returns the labels of nodes that cannot run an agent, because no machine that
// runs DaemonSets is behind them. The node affinity of the DaemonSet excludes the same labels.
func AgentlessLabels() []NodeLabel {
	return []NodeLabel{
		// Virtual Kubelet and the providers that keep its label: Azure Container Instances,
		// Alibaba Cloud ECI and ACS, Huawei CCI, Volcengine VCI, interLink. KWOK simulates nodes.
		{Key: v1alpha1.NodeTypeLabel, Values: []string{v1alpha1.NodeTypeVirtualKubelet, "kwok"}},
		// AWS Fargate: the machine of a pod runs only this pod.
		{Key: "eks.amazonaws.com/compute-type", Values: []string{"fargate"}},
		// Liqo.
		{Key: "liqo.io/type", Values: []string{"virtual-node"}},
		// Tencent Cloud super nodes.
		{Key: corev1.LabelInstanceTypeStable, Values: []string{"eklet"}},
		// Oracle Cloud.
		{Key: "node-role.kubernetes.io/virtual-node"},
		// Admiralty, and other providers that are built with the library of Virtual Kubelet.
		{Key: "virtual-kubelet.io/provider"},
	}
}

// IsVirtual reports whether the labels are those of a virtual node, whose provider may read
// annotations.
func IsVirtual(nodeLabels map[string]string) bool {
	return nodeLabels[v1alpha1.NodeTypeLabel] == v1alpha1.NodeTypeVirtualKubelet
}

// HasAgent reports whether an agent can run on a node with the labels. It cannot run on virtual
// nodes.
func HasAgent(nodeLabels map[string]string) bool {
	return !slices.ContainsFunc(AgentlessLabels(), func(l NodeLabel) bool { return l.matches(nodeLabels) })
}

// temporary is the prefix of the taints that Kubernetes sets for conditions of a node, such as
// node.kubernetes.io/not-ready. They may disappear before the pod is scheduled.
const temporary = "node.kubernetes.io/"

// MayRunOn reports whether the pod is bound to one of the virtual nodes or may be bound to one:
// its node selector and required node affinity match the node, and it tolerates the node's
// taints. It ignores resources and temporary taints, because they change.
func MayRunOn(pod *corev1.Pod, virtual []corev1.Node) bool {
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	for i := range virtual {
		node := &virtual[i]
		if !IsVirtual(node.Labels) {
			continue
		}
		if pod.Spec.NodeName != "" {
			if pod.Spec.NodeName == node.Name {
				return true
			}
			continue
		}
		if admits(node, affinity, pod.Spec.Tolerations) {
			return true
		}
	}
	return false
}

// Admits reports whether the node selector and required node affinity of the pod match the node,
// and the pod tolerates the node's taints. It ignores resources and temporary taints.
func Admits(node *corev1.Node, pod *corev1.Pod) bool {
	return admits(node, nodeaffinity.GetRequiredNodeAffinity(pod), pod.Spec.Tolerations)
}

func admits(node *corev1.Node, affinity nodeaffinity.RequiredNodeAffinity, tolerations []corev1.Toleration) bool {
	// An invalid affinity matches no node.
	matches, err := affinity.Match(node)
	if err != nil || !matches {
		return false
	}
	_, untolerated := schedulinghelpers.FindMatchingUntoleratedTaint(
		logr.Discard(), node.Spec.Taints, tolerations, isPermanent, true)
	return !untolerated
}

// isPermanent reports whether the taint always prevents pods without a toleration.
func isPermanent(taint *corev1.Taint) bool {
	return (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute) &&
		!strings.HasPrefix(taint.Key, temporary)
}
