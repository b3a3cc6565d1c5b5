// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	kindschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/config/crd"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	kindMarker     = "PodProbeMarker"
	kindSidecarSet = "SidecarSet"
	kindCronJob    = "AdvancedCronJob"
)

// kind is a kind with a CustomResourceDefinition of Seamark.
type kind struct {
	definition func() []byte
	of         reflect.Type
}

func kinds() map[kindschema.GroupVersionKind]kind {
	return map[kindschema.GroupVersionKind]kind{
		v1alpha1.GroupVersion().WithKind(kindMarker):           {crd.PodProbeMarkers, reflect.TypeFor[v1alpha1.PodProbeMarker]()},
		v1alpha1.GroupVersion().WithKind("NodePodProbe"):       {crd.NodePodProbes, reflect.TypeFor[v1alpha1.NodePodProbe]()},
		v1alpha1.GroupVersion().WithKind("CloneSet"):           {crd.CloneSets, reflect.TypeFor[v1alpha1.CloneSet]()},
		v1alpha1.GroupVersion().WithKind("StatefulSet"):        {crd.StatefulSets, reflect.TypeFor[v1beta1.StatefulSet]()},
		v1beta1.GroupVersion().WithKind("StatefulSet"):         {crd.StatefulSets, reflect.TypeFor[v1beta1.StatefulSet]()},
		v1alpha1.GroupVersion().WithKind(kindSidecarSet):       {crd.SidecarSets, reflect.TypeFor[v1alpha1.SidecarSet]()},
		v1beta1.GroupVersion().WithKind(kindSidecarSet):        {crd.SidecarSets, reflect.TypeFor[v1alpha1.SidecarSet]()},
		v1alpha1.GroupVersion().WithKind(kindCronJob):          {crd.AdvancedCronJobs, reflect.TypeFor[v1alpha1.AdvancedCronJob]()},
		v1beta1.GroupVersion().WithKind(kindCronJob):           {crd.AdvancedCronJobs, reflect.TypeFor[v1alpha1.AdvancedCronJob]()},
		v1alpha1.GroupVersion().WithKind("DaemonSet"):          {crd.DaemonSets, reflect.TypeFor[v1alpha1.DaemonSet]()},
		v1beta1.GroupVersion().WithKind("DaemonSet"):           {crd.DaemonSets, reflect.TypeFor[v1alpha1.DaemonSet]()},
		v1alpha1.GroupVersion().WithKind("BroadcastJob"):       {crd.BroadcastJobs, reflect.TypeFor[v1alpha1.BroadcastJob]()},
		v1beta1.GroupVersion().WithKind("BroadcastJob"):        {crd.BroadcastJobs, reflect.TypeFor[v1alpha1.BroadcastJob]()},
		v1alpha1.GroupVersion().WithKind("ImagePullJob"):       {crd.ImagePullJobs, reflect.TypeFor[v1alpha1.ImagePullJob]()},
		v1beta1.GroupVersion().WithKind("ImagePullJob"):        {crd.ImagePullJobs, reflect.TypeFor[v1alpha1.ImagePullJob]()},
		seamarkv1alpha1.GroupVersion().WithKind("ProbePlan"):   {crd.ProbePlans, reflect.TypeFor[seamarkv1alpha1.ProbePlan]()},
		seamarkv1alpha1.GroupVersion().WithKind("ProbeReport"): {crd.ProbeReports, reflect.TypeFor[seamarkv1alpha1.ProbeReport]()},
	}
}

// served returns the kinds that are checked, ordered.
func served() []kindschema.GroupVersionKind {
	all := make([]kindschema.GroupVersionKind, 0, len(kinds()))
	for gvk := range kinds() {
		all = append(all, gvk)
	}
	slices.SortFunc(all, func(a, b kindschema.GroupVersionKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(b.Version, a.Version))
	})
	return all
}

// openKruiseKinds returns the kinds of apps.kruise.io that only OpenKruise serves, up to its version 1.9.
func openKruiseKinds() []string {
	return []string{
		"ConfigMapSet", "ContainerRecreateRequest", "EphemeralJob", "ImageListPullJob", "ImagePullJob",
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
