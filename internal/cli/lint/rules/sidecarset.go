// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
)

// sidecarSet is a SidecarSet.
type sidecarSet struct {
	*object
	set *v1alpha1.SidecarSet
}

// sidecarSet reads a SidecarSet.
func (c *checker) sidecarSet(o *object) {
	c.checkSchema(o)
	set := &v1alpha1.SidecarSet{}
	// The schema has found a value that does not have the type.
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.raw.Object, set) == nil && set.Spec.Selector != nil {
		// duplicate-object finds sets with the same name.
		set.UID = types.UID(set.Name)
		c.sidecarSets = append(c.sidecarSets, &sidecarSet{object: o, set: set})
	}
}

// compareSets finds what the controller would not accept. Which annotations are allowed is not known. Sets that
// are created together are accepted by their names.
func (c *checker) compareSets() {
	slices.SortStableFunc(c.sidecarSets, func(a, b *sidecarSet) int { return strings.Compare(a.raw.GetName(), b.raw.GetName()) })
	var accepted []*v1alpha1.SidecarSet
	for _, each := range c.sidecarSets {
		problems := accept.Check(each.set, accepted, accept.WhiteList{DefaultAllowed: true})
		for _, problem := range problems {
			c.add(ruleSidecarSet, each.object, problem.Field, problem.Message, "")
		}
		if len(problems) == 0 {
			accepted = append(accepted, each.set)
		}
	}
}
