// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/sidecarset"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// sidecarSet is a SidecarSet.
type sidecarSet struct {
	*object
	set *v1alpha1.SidecarSet
	// injects is what an accepted set injects.
	injects *sidecarset.Set
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

// compareSets finds what the controller would not accept, and injects the other sets into the pods. Which annotations are allowed is
// not known. Sets that are created together are accepted by their names.
func (c *checker) compareSets() {
	slices.SortStableFunc(c.sidecarSets, func(a, b *sidecarSet) int { return strings.Compare(a.raw.GetName(), b.raw.GetName()) })
	var accepted []*v1alpha1.SidecarSet
	var all []*sidecarset.Set
	for _, each := range c.sidecarSets {
		problems := accept.Check(each.set, accepted, accept.WhiteList{DefaultAllowed: true})
		for _, problem := range problems {
			c.add(ruleSidecarSet, each.object, problem.Field, problem.Message, "")
		}
		if len(problems) > 0 {
			continue
		}
		accepted = append(accepted, each.set)
		// The schema has found a set without containers.
		if set, err := sidecarset.New(each.set); err == nil {
			each.injects, all = set, append(all, set)
		}
	}
	for _, each := range c.sidecarSets {
		for _, w := range c.workloads {
			if each.injects != nil {
				c.inject(each, w, all)
			}
		}
	}
}

// inject injects the set into the pods of the workload if it can select them. Pods may have one that is paused.
func (c *checker) inject(s *sidecarSet, w *workload, all []*sidecarset.Set) {
	selector, open := requirementsOf(s.set.Spec.Selector), controllerLabels()
	if !s.injects.SelectsNamespace(w.pod.Namespace, true) || !selector.match(w.pod.Labels, open) {
		return
	}
	injected, _, err := s.injects.Inject(&w.pod, all, metav1.Time{})
	refused := (*inject.RefusedError)(nil)
	switch {
	case err == nil:
		w.pod = *injected
	case !errors.As(err, &refused) || s.set.Spec.InjectionStrategy.Paused || s.set.Annotations[v1alpha1.InjectionFailurePolicyKey] == "Ignore":
		// The pods are created without the set.
	case s.injects.SelectsNamespace(w.pod.Namespace, false) && !slices.ContainsFunc(selector, func(r labels.Requirement) bool { return open.Has(r.Key()) }):
		c.add(ruleSidecarSet, s.object, "", fmt.Sprintf("a cluster refuses the pods of %s: %s", w.place(), refused.Reason), "")
	}
}
