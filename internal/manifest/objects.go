// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// defaultGracePeriod is the default of an API server, in seconds.
const defaultGracePeriod = 30

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// named defaults the namespace and validates the metadata. It reports whether the object is
// valid and unique.
func (r *reader) named(at Place, object metav1.Object) bool {
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	errs := apivalidation.ValidateObjectMetaAccessor(object, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if object.GetName() == "" && object.GetGenerateName() != "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "name"), "a local run does not generate names"))
	}
	addErrors(r, at, errs)
	return len(errs) == 0 && r.unique(at, object)
}

// unique rejects a second object of the same kind and name.
func (r *reader) unique(at Place, object metav1.Object) bool {
	key := at.Object + " " + object.GetNamespace()
	before, taken := r.seen[key]
	if taken {
		r.addError(at, &fieldError{"metadata.name", fmt.Sprintf("Duplicate value: %q: already used by %s", object.GetName(), before.field(""))})
		return false
	}
	r.seen[key] = at
	return true
}

func (r *reader) pod(at Place, pod *corev1.Pod) {
	if !r.named(at, pod) {
		return
	}
	r.checkFields(at, pod)
	spec := field.NewPath("spec")
	r.objects.parts[nameOf(pod)] = placesIn(at, spec, &pod.Spec, nil)
	r.add(at, pod, spec)
}

// workload is what all workloads have in common.
type workload struct {
	meta     *metav1.ObjectMeta
	replicas *int32
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	// ids returns what the names of the given number of pods end with.
	ids func(pods int) []string
	// identify sets the labels that depend on the end of the pod's name. It may be nil.
	identify func(pod *corev1.Pod, id string)
	// claims are made for each pod.
	claims []corev1.PersistentVolumeClaim
	// fixed is whether the number of pods can't be overridden.
	fixed bool
	// job is whether the pods run to completion, so that they need no selector.
	job bool
	// path is the field of the spec.
	path *field.Path
	// count is the field of the number of pods. Empty means replicas.
	count string
}

// workload adds the pods of a workload. They are numbered, so that their names are the same
// in every run. The object has the fields that the manifest sets.
func (r *reader) workload(at Place, object runtime.Object, w workload) {
	if !r.named(at, w.meta) {
		return
	}
	r.checkFields(at, object)
	if errs := checkWorkload(w); len(errs) > 0 {
		addErrors(r, at, errs)
		r.check(at, w.pod(w.ids(1)[0]), w.path.Child("template", "spec"))
		return
	}
	replicas := int32(1)
	switch {
	case r.options.Replicas != nil && !w.fixed:
		replicas = *r.options.Replicas
	case w.replicas != nil:
		replicas = *w.replicas
	}
	path := w.path.Child("template", "spec")
	if replicas == 0 {
		r.check(at, w.pod(w.ids(1)[0]), path)
		return
	}
	parts := placesIn(at, path, &w.template.Spec, w.claims)
	for i, id := range w.ids(int(replicas)) {
		pod := w.pod(id)
		podAt := at
		podAt.Object = "Pod " + pod.Name
		if !r.unique(podAt, pod) {
			continue
		}
		if i == 0 {
			r.add(at, pod, path)
		} else {
			r.prepare(pod)
			r.objects.Pods = append(r.objects.Pods, pod)
		}
		pod.OwnerReferences = ownedBy(at, w.meta)
		r.objects.parts[nameOf(pod)] = parts
	}
}

// ownedBy returns the reference to a workload, by which its pods are shown together. It has no UID, because the
// workload itself does not exist in a run.
func ownedBy(at Place, meta *metav1.ObjectMeta) []metav1.OwnerReference {
	kind, _, _ := strings.Cut(at.Object, " ")
	return []metav1.OwnerReference{{Kind: kind, Name: meta.Name, Controller: new(true)}}
}

// ordinals returns a function that counts from the first ordinal.
func ordinals(first int) func(pods int) []string {
	return func(pods int) []string {
		texts := make([]string, pods)
		for i := range texts {
			texts[i] = strconv.Itoa(first + i)
		}
		return texts
	}
}

// identifyOrdinal sets the labels of a pod of a StatefulSet.
func identifyOrdinal(pod *corev1.Pod, id string) {
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = id
}

// pod returns the pod whose name ends with the ID.
func (w workload) pod(id string) *corev1.Pod {
	name := w.meta.Name + "-" + id
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   w.meta.Namespace,
			Name:        name,
			Labels:      maps.Clone(w.template.Labels),
			Annotations: maps.Clone(w.template.Annotations),
		},
		Spec: *w.template.Spec.DeepCopy(),
	}
	if w.identify != nil && pod.Labels != nil {
		w.identify(pod, id)
	}
	withClaims(pod, w.claims)
	return pod
}

func checkWorkload(w workload) field.ErrorList {
	var errs field.ErrorList
	spec := w.path
	if w.replicas != nil && (*w.replicas < 0 || *w.replicas > MaxReplicas) {
		errs = append(errs, field.Invalid(spec.Child(cmp.Or(w.count, "replicas")), *w.replicas, fmt.Sprintf("must be between 0 and %d", MaxReplicas)))
	}
	labelsPath := spec.Child("template", "metadata", "labels")
	errs = append(errs, metav1validation.ValidateLabels(w.template.Labels, labelsPath)...)
	errs = append(errs, apivalidation.ValidateAnnotations(w.template.Annotations, spec.Child("template", "metadata", "annotations"))...)
	if w.job {
		if policy := w.template.Spec.RestartPolicy; policy != corev1.RestartPolicyOnFailure && policy != corev1.RestartPolicyNever {
			errs = append(errs, field.NotSupported(spec.Child("template", "spec", "restartPolicy"), policy,
				[]corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
		}
		return errs
	}
	if policy := w.template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(spec.Child("template", "spec", "restartPolicy"), policy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if w.selector == nil {
		return append(errs, field.Required(spec.Child("selector"), "must match the labels of the template"))
	}
	if wrong := checkSelector(w.selector, spec.Child("selector")); len(wrong) > 0 {
		return append(errs, wrong...)
	}
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(spec.Child("selector"), "", err.Error()))
	case selector.Empty():
		errs = append(errs, field.Required(spec.Child("selector"), "must match the labels of the template"))
	case !selector.Matches(labels.Set(w.template.Labels)):
		errs = append(errs, field.Invalid(labelsPath, w.template.Labels,
			"must match spec.selector: "+metav1.FormatLabelSelector(w.selector)))
	}
	return errs
}

// checkSelector validates a selector. The error for an unknown operator lists the supported
// operators.
func checkSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
	}
	var errs field.ErrorList
	for i, expression := range selector.MatchExpressions {
		if !slices.Contains(operators, expression.Operator) {
			errs = append(errs, field.NotSupported(path.Child("matchExpressions").Index(i).Child("operator"), expression.Operator, operators))
		}
	}
	options := metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
	return append(errs, metav1validation.ValidateLabelSelector(selector, options, path)...)
}

func (r *reader) add(at Place, pod *corev1.Pod, spec *field.Path) {
	r.check(at, pod, spec)
	r.objects.Pods = append(r.objects.Pods, pod)
}

// check sets the defaults of the pod and adds its check. The check runs after all documents
// are read, because the pod may refer to any of them.
func (r *reader) check(at Place, pod *corev1.Pod, spec *field.Path) {
	r.prepare(pod)
	r.checks = append(r.checks, func() {
		addErrors(r, at, validatePod(pod, spec, &r.objects))
	})
}

// setDefaults sets the defaults of an API server that a local run needs. Package plan sets the
// defaults of probes.
func setDefaults(pod *corev1.Pod) {
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		grace := int64(defaultGracePeriod)
		pod.Spec.TerminationGracePeriodSeconds = &grace
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
	}
	pod.Status = corev1.PodStatus{}
}

// marker validates a marker with the schema of its CRD, and then as the manager does.
func (r *reader) marker(at Place, object *unstructured.Unstructured, encoded []byte) {
	marker := &v1alpha1.PodProbeMarker{}
	of := whole(object.DeepCopy(), marker)
	if !r.customResource(at, object, of) || !r.decode(at, of, encoded, marker, false) || !r.named(at, marker) {
		return
	}
	if _, err := plan.Compile(marker); err != nil {
		r.addError(at, err)
		return
	}
	marker.Generation, marker.Status = 1, v1alpha1.PodProbeMarkerStatus{}
	r.objects.Markers = append(r.objects.Markers, *marker)
	r.objects.markers[nameOf(marker)] = at
}
