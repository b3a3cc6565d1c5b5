// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	kindschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const kindMarker = "PodProbeMarker"

// hook is what is checked of the objects of a kind besides their schema and pods. Fields may be nil.
type hook struct {
	// check checks an object alone, in place of the checks of all kinds.
	check func(c *checker, o *object)
	// template returns the path of the template of an object, and an empty one. The default is that of pods at spec.template.
	template func(c *checker, o *object) (path []string, template any)
	// compare compares the objects of the kind with each other.
	compare func(c *checker)
}

// hooks returns the hooks by kind.
func hooks() map[string]hook {
	return map[string]hook{
		"SidecarSet":      {check: (*checker).sidecarSet, compare: (*checker).compareSets},
		"AdvancedCronJob": {check: (*checker).cronJob, template: (*checker).jobTemplate},
	}
}

// hookOf returns the hook of an object, which is empty if its kind has none.
func hookOf(o *object) hook {
	if kind := kinds.ByGroupKind(o.raw.GroupVersionKind().GroupKind()); kind != nil {
		return hooks()[kind.Kind]
	}
	return hook{}
}

// checkedKinds returns the types of the kinds with a CustomResourceDefinition of Seamark. The versions of a kind have the same
// fields.
func checkedKinds() map[kindschema.GroupVersionKind]reflect.Type {
	checked := map[kindschema.GroupVersionKind]reflect.Type{
		v1alpha1.GroupVersion().WithKind(kindMarker):           reflect.TypeFor[v1alpha1.PodProbeMarker](),
		v1alpha1.GroupVersion().WithKind("NodePodProbe"):       reflect.TypeFor[v1alpha1.NodePodProbe](),
		seamarkv1alpha1.GroupVersion().WithKind("ProbePlan"):   reflect.TypeFor[seamarkv1alpha1.ProbePlan](),
		seamarkv1alpha1.GroupVersion().WithKind("ProbeReport"): reflect.TypeFor[seamarkv1alpha1.ProbeReport](),
	}
	for _, kind := range kinds.Table() {
		for _, version := range kind.Served() {
			checked[version.WithKind(kind.Kind)] = reflect.TypeOf(kind.New()).Elem()
		}
	}
	return checked
}

// served returns the kinds that are checked, ordered.
func served() []kindschema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(checkedKinds()), func(a, b kindschema.GroupVersionKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(b.Version, a.Version))
	})
}

// openKruiseKinds returns the kinds of apps.kruise.io that only OpenKruise serves, up to its version 1.9.
func openKruiseKinds() []string {
	return []string{
		"ConfigMapSet", "ContainerRecreateRequest", "EphemeralJob", "ImageListPullJob",
		"NodeImage", "PersistentPodState", "ResourceDistribution", "UnitedDeployment", "WorkloadSpread",
	}
}

// checkKind finds a kind or a version that Seamark does not serve, in the groups that it serves.
func (c *checker) checkKind(o *object) {
	gvk, known := o.raw.GroupVersionKind(), served()
	group := slices.DeleteFunc(slices.Clone(known), func(k kindschema.GroupVersionKind) bool { return k.Group != gvk.Group })
	same := slices.IndexFunc(known, func(k kindschema.GroupVersionKind) bool { return k.Kind == gvk.Kind })
	switch {
	case slices.Contains(known, gvk):
	case gvk.Kind == kindMarker || len(group) > 0 && same >= 0:
		c.add(ruleAPIVersion, o, "apiVersion", fmt.Sprintf("%q is not supported for the kind %s", o.raw.GetAPIVersion(), gvk.Kind),
			"use "+known[same].GroupVersion().String())
	case len(group) == 0:
		// Objects of other groups are not checked.
	case gvk.Group == v1alpha1.GroupName && slices.Contains(openKruiseKinds(), gvk.Kind):
		c.add(ruleNotServed, o, "kind", fmt.Sprintf("Seamark does not serve %q, which is a kind of OpenKruise: nothing acts on the object unless OpenKruise runs, too",
			gvk.Kind), "")
	default:
		c.add(ruleKind, o, "kind", fmt.Sprintf("%q is not a kind of %s", gvk.Kind, gvk.Group), kindFix(gvk, group))
	}
}

// kindFix returns a similar kind, or all kinds of the group.
func kindFix(gvk kindschema.GroupVersionKind, group []kindschema.GroupVersionKind) string {
	var names []string
	for _, k := range group {
		names = append(names, k.Kind)
	}
	all := names
	if gvk.Group == v1alpha1.GroupName {
		all = append(openKruiseKinds(), names...)
	}
	if similar := text.Closest(gvk.Kind, all); similar != "" {
		return fmt.Sprintf("did you mean %q?", similar)
	}
	return "use one of " + strings.Join(names, ", ")
}
