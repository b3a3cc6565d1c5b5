// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// protected returns the kinds, by group, whose objects the label protects from deletion: those with spec.replicas, and others.
// They are those of the policy seamark-delete-protection.
func protected() (scaled, others map[string][]string) {
	scaled = map[string][]string{"apps": {"Deployment", "ReplicaSet", "StatefulSet"}}
	others = map[string][]string{
		"":                     {"Namespace", "Service"},
		"apps":                 {"DaemonSet"},
		"networking.k8s.io":    {"Ingress"},
		"apiextensions.k8s.io": {"CustomResourceDefinition"},
	}
	for _, kind := range kinds.Table() {
		switch {
		case kind.Role != kinds.Set:
		case kind.HasReplicas:
			scaled[kind.Group] = append(scaled[kind.Group], kind.Kind)
		default:
			others[kind.Group] = append(others[kind.Group], kind.Kind)
		}
	}
	return scaled, others
}

// protection finds a label that protects an object from deletion, and that has another effect than in OpenKruise or none.
func (c *checker) protection(o *object) {
	value, found := o.raw.GetLabels()[v1alpha1.DeleteProtectionKey]
	if !found {
		return
	}
	const path = "metadata.labels[" + v1alpha1.DeleteProtectionKey + "]"
	gvk := o.raw.GroupVersionKind()
	scaled, others := protected()
	other := slices.Contains(others[gvk.Group], gvk.Kind)
	switch {
	case value != v1alpha1.DeleteProtectionAlways && value != v1alpha1.DeleteProtectionCascading:
		c.add(ruleProtection, o, path, fmt.Sprintf("%q has no effect", value), "use "+v1alpha1.DeleteProtectionAlways+" or "+v1alpha1.DeleteProtectionCascading)
	case !other && !slices.Contains(scaled[gvk.Group], gvk.Kind):
		c.add(ruleProtection, o, path, fmt.Sprintf("has no effect for the kind %s", gvk.Kind), "remove the label")
	case other && value == v1alpha1.DeleteProtectionCascading:
		c.add(ruleProtection, o, path, fmt.Sprintf("%s has the effect of Always for the kind %s, which has no spec.replicas", value, gvk.Kind),
			"use Always, and remove the label before you delete the object")
	}
}
