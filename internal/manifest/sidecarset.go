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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/sidecarset"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

// injector is a SidecarSet of the files.
type injector struct {
	at Place
	*sidecarset.Set
	// pods are those that it selects.
	pods []*corev1.Pod
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
	r.injectors = append(r.injectors, &injector{at: at, Set: &sidecarset.Set{SidecarSet: set}})
}

// inject injects the sets into the pods, as a cluster does when it creates them.
func (r *reader) inject() {
	slices.SortStableFunc(r.injectors, func(a, b *injector) int { return strings.Compare(a.Name, b.Name) })
	var accepted []*v1alpha1.SidecarSet
	var all []*sidecarset.Set
	for _, i := range r.injectors {
		problems := accept.Check(i.SidecarSet, accepted, accept.WhiteList{DefaultAllowed: true})
		for _, problem := range problems {
			r.addError(i.at, &fieldError{problem.Field, problem.Message})
		}
		if len(problems) > 0 {
			continue
		}
		accepted = append(accepted, i.SidecarSet)
		set, err := sidecarset.New(i.SidecarSet)
		if err != nil {
			r.addError(i.at, err)
			continue
		}
		i.Set, all = set, append(all, set)
		r.choose(i)
		r.checkInjected(i)
	}
	for _, i := range r.injectors {
		for _, pod := range i.pods {
			r.injectInto(i, pod, all)
		}
	}
}

// choose sets the pods that get the containers, and warns about what selects none.
func (r *reader) choose(i *injector) {
	if i.Spec.InjectionStrategy.Paused {
		r.warn(i, "spec.injectionStrategy.paused", "the injection is paused: no pod gets the containers")
		return
	}
	for _, selector := range overlap.Namespaces(&i.Spec) {
		if !sidecarset.OnlyNames(selector) {
			r.warn(i, "spec.namespaceSelector", "a local run knows the name of a namespace ("+corev1.LabelMetadataName+"), and no other label of it")
		}
	}
	for _, pod := range r.objects.Pods {
		if i.Selects(pod) {
			i.pods = append(i.pods, pod)
		}
	}
	if len(i.pods) == 0 {
		r.warn(i, "spec.selector", "the set selects no pods")
	}
}

// pod returns the containers and volumes of the set as those of a pod.
func (i *injector) pod() corev1.PodSpec {
	spec := corev1.PodSpec{Volumes: slices.Clone(i.Spec.Volumes)}
	for j := range i.Spec.InitContainers {
		spec.InitContainers = append(spec.InitContainers, i.Spec.InitContainers[j].Container)
	}
	for j := range i.Spec.Containers {
		spec.Containers = append(spec.Containers, i.Spec.Containers[j].Container)
	}
	return spec
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
		pod := &corev1.Pod{ObjectMeta: *of.ObjectMeta.DeepCopy(), Spec: i.pod()}
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
func (r *reader) injectInto(i *injector, pod *corev1.Pod, all []*sidecarset.Set) {
	injected, warnings, err := i.Inject(pod, all, metav1.Now())
	refused := (*inject.RefusedError)(nil)
	switch {
	case errors.As(err, &refused) && i.Annotations[v1alpha1.InjectionFailurePolicyKey] == "Ignore":
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
		r.warn(i, "", strings.TrimPrefix(warning, "SidecarSet "+i.Name+": "))
	}
	*pod = *injected
	// The pods of a workload share the map.
	spec := i.pod()
	places := placesIn(i.at, field.NewPath("spec"), &spec, nil)
	maps.Copy(places, r.objects.parts[nameOf(pod)])
	r.objects.parts[nameOf(pod)] = places
}
