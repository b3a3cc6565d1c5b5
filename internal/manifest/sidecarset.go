// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

// injector is a SidecarSet of the files.
type injector struct {
	at  Place
	set *v1alpha1.SidecarSet
	// revision is what it injects, and pods are those that it selects.
	revision *inject.Revision
	pods     []*corev1.Pod
}

// warn adds a warning about a field of the set.
func (r *reader) warn(i *injector, path, message string) {
	text := fmt.Sprintf("%s: %s", i.at.field(path), message)
	if !slices.Contains(r.objects.warnings, text) {
		r.objects.warnings = append(r.objects.warnings, text)
	}
}

// sidecarSet validates a SidecarSet and adds it. It injects after all documents are read.
func (r *reader) sidecarSet(at Place, object *unstructured.Unstructured, encoded []byte) {
	set := &v1alpha1.SidecarSet{}
	written := object.DeepCopy()
	withImages(object, "spec")
	of := whole(written, set)
	valid := r.customResource(at, object, of)
	if !r.decode(at, of, encoded, set, !valid) || !valid || !r.named(at, set) {
		return
	}
	// The sets of a cluster have no namespace. Their names identify them.
	set.Namespace, set.UID = "", types.UID(set.Name)
	r.checkFields(at, written)
	for _, list := range [][]v1alpha1.SidecarContainer{set.Spec.InitContainers, set.Spec.Containers} {
		for i := range list {
			r.command(&list[i].Container)
		}
	}
	r.injectors = append(r.injectors, &injector{at: at, set: set})
}

// inject injects the sets into the pods, as a cluster does when it creates them.
func (r *reader) inject() {
	slices.SortStableFunc(r.injectors, func(a, b *injector) int { return strings.Compare(a.set.Name, b.set.Name) })
	var accepted []*v1alpha1.SidecarSet
	for _, i := range r.injectors {
		problems := accept.Check(i.set, accepted, accept.WhiteList{DefaultAllowed: true})
		for _, problem := range problems {
			r.addError(i.at, &fieldError{problem.Field, problem.Message})
		}
		if len(problems) > 0 {
			continue
		}
		accepted = append(accepted, i.set)
		if err := r.revise(i); err != nil {
			r.addError(i.at, err)
			continue
		}
		r.choose(i)
		r.checkInjected(i)
	}
	known := func(set, _ string) *inject.Revision {
		if at := slices.IndexFunc(r.injectors, func(i *injector) bool { return i.set.Name == set }); at >= 0 {
			return r.injectors[at].revision
		}
		return nil
	}
	for _, i := range r.injectors {
		for _, pod := range i.pods {
			r.injectInto(i, pod, known)
		}
	}
}

// revise sets what the set injects: a run has no earlier revisions.
func (r *reader) revise(i *injector) error {
	stored, err := history.New(i.set, metav1.NamespaceDefault, 1, 0)
	if err != nil {
		return err //nolint:wrapcheck // the place names the set
	}
	i.revision, err = history.Parse(stored)
	return err //nolint:wrapcheck // see above
}

// choose sets the pods that get the containers, and warns about what selects none.
func (r *reader) choose(i *injector) {
	if i.set.Spec.InjectionStrategy.Paused {
		r.warn(i, "spec.injectionStrategy.paused", "the injection is paused: no pod gets the containers")
		return
	}
	selectors := overlap.Namespaces(&i.set.Spec)
	for _, selector := range selectors {
		if !onlyNames(selector) {
			r.warn(i, "spec.namespaceSelector", "a local run knows the name of a namespace ("+corev1.LabelMetadataName+"), and no other label of it")
		}
	}
	for _, pod := range r.objects.Pods {
		namespace := labels.Set{corev1.LabelMetadataName: pod.Namespace}
		if pod.Namespace != metav1.NamespaceSystem && selects(i.set.Spec.Selector, labels.Set(pod.Labels)) &&
			!slices.ContainsFunc(selectors, func(s *metav1.LabelSelector) bool { return !selects(s, namespace) }) {
			i.pods = append(i.pods, pod)
		}
	}
	if len(i.pods) == 0 {
		r.warn(i, "spec.selector", "the set selects no pods")
	}
}

// selects reports whether the labels match a selector. The schema has checked it.
func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && compiled.Matches(set)
}

// onlyNames reports whether a selector of namespaces depends on their names only.
func onlyNames(selector *metav1.LabelSelector) bool {
	keys := slices.Collect(maps.Keys(selector.MatchLabels))
	for _, requirement := range selector.MatchExpressions {
		keys = append(keys, requirement.Key)
	}
	return !slices.ContainsFunc(keys, func(key string) bool { return key != corev1.LabelMetadataName })
}

// checkInjected validates the containers of the set as those of a pod, in each namespace of the pods that get them: the ConfigMaps
// that they refer to are those of the namespace. They may also mount volumes of the pod.
func (r *reader) checkInjected(i *injector) {
	checked := sets.New[string]()
	for _, of := range i.pods {
		if checked.Has(of.Namespace) {
			continue
		}
		checked.Insert(of.Namespace)
		pod := &corev1.Pod{ObjectMeta: *of.ObjectMeta.DeepCopy()}
		for j := range i.set.Spec.InitContainers {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, i.set.Spec.InitContainers[j].Container)
		}
		for j := range i.set.Spec.Containers {
			pod.Spec.Containers = append(pod.Spec.Containers, i.set.Spec.Containers[j].Container)
		}
		pod.Spec.Volumes = slices.Clone(i.set.Spec.Volumes)
		for _, volume := range of.Spec.Volumes {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }) {
				pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
			}
		}
		setDefaults(pod)
		v := &validator{pod: pod, objects: &r.objects}
		v.spec(field.NewPath("spec"))
		addErrors(r, i.at, v.errs)
	}
}

// injectInto injects the set into a pod.
func (r *reader) injectInto(i *injector, pod *corev1.Pod, known inject.Known) {
	injected, warnings, err := inject.Inject(pod, i.revision, known, metav1.Now())
	refused := (*inject.RefusedError)(nil)
	switch {
	case errors.As(err, &refused) && i.set.Annotations[v1alpha1.InjectionFailurePolicyKey] == "Ignore":
		r.warn(i, "", fmt.Sprintf("pod %s does not get the containers: %s", pod.Name, refused.Reason))
		return
	case errors.As(err, &refused):
		r.addError(i.at, fmt.Errorf("a cluster refuses pod %s: %s", pod.Name, refused.Reason))
		return
	case err != nil:
		r.addError(i.at, err)
		return
	}
	for _, warning := range warnings {
		r.warn(i, "", strings.TrimPrefix(warning, "SidecarSet "+i.set.Name+": "))
	}
	*pod = *injected
	if len(i.set.Spec.Volumes) == 0 {
		return
	}
	// The pods of a workload share the map.
	places := volumesIn(i.at, field.NewPath("spec"), i.set.Spec.Volumes, nil)
	maps.Copy(places, r.objects.volumes[nameOf(pod)])
	r.objects.volumes[nameOf(pod)] = places
}
