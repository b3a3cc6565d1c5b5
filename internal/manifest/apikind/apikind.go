// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apikind knows the kinds that Seamark serves, and decides whether the kind of a manifest is one that an API server
// has. It is pure.
package apikind

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Marker is the kind of markers.
const Marker = "PodProbeMarker"

// Reason is what is wrong with a kind.
type Reason string

const (
	// Unknown means that the group has no such kind.
	Unknown Reason = "Unknown"
	// Version means that Seamark serves the kind with another group or version.
	Version Reason = "Version"
	// NotServed means that only OpenKruise serves the kind.
	NotServed Reason = "NotServed"
)

// Problem is what is wrong with the kind of an object.
type Problem struct {
	Reason Reason
	// Field is apiVersion or kind, and Message describes its value. Fix is what to do, or empty.
	Field, Message, Fix string
}

// Types returns the types of the kinds with a CustomResourceDefinition of Seamark. The versions of a kind have the same
// fields.
func Types() map[schema.GroupVersionKind]reflect.Type {
	types := map[schema.GroupVersionKind]reflect.Type{
		v1alpha1.GroupVersion().WithKind(Marker):               reflect.TypeFor[v1alpha1.PodProbeMarker](),
		v1alpha1.GroupVersion().WithKind("NodePodProbe"):       reflect.TypeFor[v1alpha1.NodePodProbe](),
		seamarkv1alpha1.GroupVersion().WithKind("ProbePlan"):   reflect.TypeFor[seamarkv1alpha1.ProbePlan](),
		seamarkv1alpha1.GroupVersion().WithKind("ProbeReport"): reflect.TypeFor[seamarkv1alpha1.ProbeReport](),
	}
	for _, kind := range kinds.Table() {
		for _, version := range kind.Served() {
			types[version.WithKind(kind.Kind)] = reflect.TypeOf(kind.New()).Elem()
		}
	}
	return types
}

// served returns the kinds with a CustomResourceDefinition, ordered.
func served() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(Types()), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(b.Version, a.Version))
	})
}

// openKruise returns the kinds of apps.kruise.io that only OpenKruise serves, up to its version 1.9.
func openKruise() []string {
	return []string{
		"ConfigMapSet", "ContainerRecreateRequest", "EphemeralJob", "ImageListPullJob",
		"NodeImage", "PersistentPodState", "ResourceDistribution", "UnitedDeployment", "WorkloadSpread",
	}
}

// Check returns what is wrong with a kind, or nil: in the groups that Seamark serves, a kind or a version that it does not
// serve, and in the groups of Kubernetes, a kind that is misspelled. The kinds of other groups are not known.
func Check(gvk schema.GroupVersionKind) *Problem {
	known := served()
	group := slices.DeleteFunc(slices.Clone(known), func(k schema.GroupVersionKind) bool { return k.Group != gvk.Group })
	same := slices.IndexFunc(known, func(k schema.GroupVersionKind) bool { return k.Kind == gvk.Kind })
	switch {
	case slices.Contains(known, gvk):
		return nil
	case gvk.Kind == Marker || len(group) > 0 && same >= 0:
		return &Problem{Version, "apiVersion", fmt.Sprintf("%q is not supported for the kind %s", gvk.GroupVersion(), gvk.Kind),
			"use " + known[same].GroupVersion().String()}
	case len(group) == 0:
		return misspelled(gvk)
	case gvk.Group == v1alpha1.GroupName && slices.Contains(openKruise(), gvk.Kind):
		return &Problem{NotServed, "kind", fmt.Sprintf(
			"Seamark does not serve %q, which is a kind of OpenKruise: nothing acts on the object unless OpenKruise runs, too", gvk.Kind,
		), ""}
	default:
		return &Problem{Unknown, "kind", fmt.Sprintf("%q is not a kind of %s", gvk.Kind, gvk.Group), fix(gvk, group)}
	}
}

// fix returns a similar kind, or all kinds of the group.
func fix(gvk schema.GroupVersionKind, group []schema.GroupVersionKind) string {
	var names []string
	for _, k := range group {
		if !slices.Contains(names, k.Kind) {
			names = append(names, k.Kind)
		}
	}
	all := names
	if gvk.Group == v1alpha1.GroupName {
		all = append(openKruise(), names...)
	}
	if similar := text.Closest(gvk.Kind, all); similar != "" {
		return text.DidYouMean(similar)
	}
	return "use one of " + strings.Join(names, ", ")
}

// misspelled returns the problem of a kind that a group of Kubernetes does not have, if it has a similar one. Other unknown kinds can be
// those of a newer version.
func misspelled(gvk schema.GroupVersionKind) *Problem {
	names := sets.New[string]()
	for kind := range scheme.Scheme.AllKnownTypes() {
		if kind.Group == gvk.Group {
			names.Insert(kind.Kind)
		}
	}
	similar := text.Typo(gvk.Kind, sets.List(names))
	if names.Has(gvk.Kind) || similar == "" {
		return nil
	}
	return &Problem{Unknown, "kind", fmt.Sprintf("%q is not a kind of %s", gvk.Kind, gvk.GroupVersion()), text.DidYouMean(similar)}
}
