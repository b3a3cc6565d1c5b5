// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodefit decides on which nodes the pods of a template run when one pod runs on each node that fits. The rules
// are those of the built-in DaemonSet: the node's name, required node affinity, and taints. A template is compiled once,
// because it is compared with thousands of nodes.
package nodefit

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// Fit is whether a pod runs on a node.
type Fit int8

const (
	// No means that no pod runs on the node.
	No Fit = iota
	// Keeps means that a pod that runs on the node stays, and that none is created: the node has a taint with the
	// effect NoSchedule that the pod does not tolerate.
	Keeps
	// Yes means that a pod runs on the node.
	Yes
)

// Template is a compiled template. It is immutable.
type Template struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

// Compile compiles the spec of a template. It returns an error that names the field if its node affinity is invalid.
func Compile(spec *corev1.PodSpec) (*Template, error) {
	if required := Required(spec.Affinity); required != nil {
		path := field.NewPath("spec", "template", "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
		if _, err := nodeaffinity.NewNodeSelector(required, field.WithPath(path)); err != nil {
			// It quotes the values, which may be as long as the object.
			return nil, errors.New(text.Message("compile the node affinity: " + err.Error()))
		}
	}
	return &Template{
		nodeName:    spec.NodeName,
		affinity:    nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity),
		tolerations: Tolerations(spec),
	}, nil
}

// joinBound is by how much the clocks of a kubelet and of the API server may differ when a node registers.
const joinBound = 10 * time.Second

// Joins reports whether the node has not been ready since it registered: the kubelet registers a node that is not ready, and the
// time of the condition is that of its last change. The answer is the same after a restart of the controller. A node that was
// ready, or whose kubelet was lost meanwhile, does not join: an update that breaks its nodes must stop.
func Joins(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionFalse && c.LastTransitionTime.Sub(node.CreationTimestamp.Time).Abs() < joinBound
		}
	}
	return false
}

// Unready reports whether the node is not ready and starts no pods of the template, and since when it is not ready. A kubelet
// that reports that its node is not ready is asked to start pods only if the template tolerates the taint of such nodes, for
// example because the pods repair the network. Without the condition, the node is a new one: Kubernetes adds it.
func (t *Template) Unready(node *corev1.Node) (since time.Time, unready bool) {
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type != corev1.NodeReady {
			continue
		}
		taint := &corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
		starts := c.Status == corev1.ConditionTrue ||
			c.Status == corev1.ConditionFalse && scheduling.TolerationsTolerateTaint(logr.Discard(), t.tolerations, taint, true)
		return c.LastTransitionTime.Time, !starts
	}
	return time.Time{}, false
}

// Node reports whether a pod runs on the node. A node that is not ready any more fits, and its pod counts: for the built-in
// DaemonSet, such nodes do not count, so that an update that breaks its nodes goes on. A node that joins fits as for the
// built-in one, which creates no pod before the node is ready, unless the template tolerates the taint.
func (t *Template) Node(node *corev1.Node) Fit {
	if t.nodeName != "" && t.nodeName != node.Name {
		return No
	}
	// An error is that of a selector, and Compile has refused it.
	if matches, err := t.affinity.Match(node); err != nil || !matches {
		return No
	}
	fit, joins := Yes, Joins(node)
	for i := range node.Spec.Taints {
		fit = min(fit, t.taint(&node.Spec.Taints[i], joins))
	}
	return fit
}

// taint returns what a taint lets a node be, which may be one that joins.
func (t *Template) taint(taint *corev1.Taint, joins bool) Fit {
	switch {
	case taint.Effect == corev1.TaintEffectPreferNoSchedule,
		!joins && (taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable),
		scheduling.TolerationsTolerateTaint(logr.Discard(), t.tolerations, taint, true):
		return Yes
	case taint.Effect == corev1.TaintEffectNoExecute:
		return No
	default:
		return Keeps
	}
}

// Why returns why the pods do not run on the node, and nothing if they do. Nodes for the same reason have the same text.
func (t *Template) Why(node *corev1.Node) string {
	if t.nodeName != "" && t.nodeName != node.Name {
		return "spec.template.spec.nodeName is " + t.nodeName
	}
	if matches, err := t.affinity.Match(node); err != nil || !matches {
		return "nodeSelector or the required node affinity of the template does not select the node"
	}
	joins := Joins(node)
	for _, want := range []Fit{No, Keeps} {
		for i := range node.Spec.Taints {
			if taint := &node.Spec.Taints[i]; t.taint(taint, joins) == want {
				return fmt.Sprintf("the template does not tolerate the taint %s", taint.ToString())
			}
		}
	}
	return ""
}

// Tolerations returns the tolerations of the pods: those of the template, and those of conditions of a node, which the
// pods of a node do not leave. They replace tolerations of the same taints, as those of the built-in DaemonSet do.
func Tolerations(spec *corev1.PodSpec) []corev1.Toleration {
	tolerations := slices.Clone(spec.Tolerations)
	add := func(effect corev1.TaintEffect, keys ...string) {
		for _, key := range keys {
			added := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
			if i := slices.IndexFunc(tolerations, func(t corev1.Toleration) bool { return t.MatchToleration(&added) }); i >= 0 {
				tolerations[i] = added
			} else {
				tolerations = append(tolerations, added)
			}
		}
	}
	add(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable)
	add(corev1.TaintEffectNoSchedule, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable)
	if spec.HostNetwork {
		add(corev1.TaintEffectNoSchedule, corev1.TaintNodeNetworkUnavailable)
	}
	return tolerations
}

// Required returns the required node affinity, nil if there is none.
func Required(affinity *corev1.Affinity) *corev1.NodeSelector {
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// Bind lets the scheduler place a pod with the spec on the node only. The template has selected the node, so its required
// node affinity is replaced.
func Bind(spec *corev1.PodSpec, node string) {
	affinity := spec.Affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
	spec.Affinity = affinity
}

// nameLength is the number of characters of NameSuffix: two of 10,000 are equal with a probability of 1 to 20,000,000.
const nameLength = 10

// NameSuffix returns the end of the name of a pod that the ID identifies, such as the name of its node. It is always the
// same, so that a pod whose creation was not answered is found by its name.
func NameSuffix(id string) string {
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:nameLength])
}

// Target returns the name of the node on which the pod runs, or to which it is bound. It is empty for another pod that is
// not scheduled.
func Target(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	required := Required(pod.Spec.Affinity)
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, requirement := range term.MatchFields {
			if requirement.Key == metav1.ObjectNameField && requirement.Operator == corev1.NodeSelectorOpIn && len(requirement.Values) == 1 {
				return requirement.Values[0]
			}
		}
	}
	return ""
}
