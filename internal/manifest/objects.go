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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/config/crd"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// defaultGracePeriod is the default of an API server, in seconds.
const defaultGracePeriod = 30

// nameOf returns the namespaced name of the object.
func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// named defaults the namespace and validates the metadata. It reports whether the object is
// valid and unique.
func (r *reader) named(at location, object metav1.Object) bool {
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
func (r *reader) unique(at location, object metav1.Object) bool {
	key := at.object + " " + object.GetNamespace()
	before, taken := r.seen[key]
	if taken {
		r.addError(at, fmt.Errorf("metadata.name: Duplicate value: %q: already used by %s in document %d of %s",
			object.GetName(), before.object, before.document, before.input))
		return false
	}
	r.seen[key] = at
	return true
}

func (r *reader) pod(at location, pod *corev1.Pod) {
	if !r.named(at, pod) {
		return
	}
	r.checkFields(at, pod, podFields())
	r.add(at, pod, field.NewPath("spec"))
}

func (r *reader) deployment(at location, d *appsv1.Deployment) {
	if !r.named(at, d) {
		return
	}
	r.checkFields(at, d, deploymentFields())
	r.workload(at, workload{
		meta: &d.ObjectMeta, replicas: d.Spec.Replicas, selector: d.Spec.Selector, template: &d.Spec.Template,
	})
}

func (r *reader) statefulSet(at location, s *appsv1.StatefulSet) {
	if !r.named(at, s) {
		return
	}
	first := 0
	if s.Spec.Ordinals != nil {
		first = int(s.Spec.Ordinals.Start)
	}
	r.checkFields(at, s, statefulSetFields())
	r.workload(at, workload{
		meta: &s.ObjectMeta, replicas: s.Spec.Replicas, selector: s.Spec.Selector, template: &s.Spec.Template,
		ids: ordinals(first), identify: identifyOrdinal, claims: s.Spec.VolumeClaimTemplates,
	})
}

// workload is what all workloads have in common.
type workload struct {
	meta     *metav1.ObjectMeta
	replicas *int32
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	// ids returns what the names of the given number of pods end with. Nil counts from 0.
	ids func(pods int) []string
	// identify sets the labels that depend on the end of the pod's name. It may be nil.
	identify func(pod *corev1.Pod, id string)
	// claims are made for each pod.
	claims []corev1.PersistentVolumeClaim
	// fixed is whether the number of pods can't be overridden.
	fixed bool
	// job is whether the pods run to completion, so that they need no selector.
	job bool
	// path is the field of the spec. Nil means spec.
	path *field.Path
	// count is the field of the number of pods. Empty means replicas.
	count string
}

// specPath returns the field of the spec.
func (w workload) specPath() *field.Path {
	if w.path == nil {
		return field.NewPath("spec")
	}
	return w.path
}

// workload adds the pods of a workload. They are numbered, so that their names are the same
// in every run.
func (r *reader) workload(at location, w workload) {
	if errs := checkWorkload(w); len(errs) > 0 {
		addErrors(r, at, errs)
		r.check(at, w.pod(w.idsOf(1)[0]), w.specPath().Child("template", "spec"))
		return
	}
	replicas := int32(1)
	switch {
	case r.options.Replicas != nil && !w.fixed:
		replicas = *r.options.Replicas
	case w.replicas != nil:
		replicas = *w.replicas
	}
	path := w.specPath().Child("template", "spec")
	if replicas == 0 {
		r.check(at, w.pod(w.idsOf(1)[0]), path)
		return
	}
	for i, id := range w.idsOf(int(replicas)) {
		pod := w.pod(id)
		podAt := at
		podAt.object = "Pod " + pod.Name
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
	}
}

// ownedBy returns the reference to a workload, by which its pods are shown together. It has no UID, because the
// workload itself does not exist in a run.
func ownedBy(at location, meta *metav1.ObjectMeta) []metav1.OwnerReference {
	kind, _, _ := strings.Cut(at.object, " ")
	return []metav1.OwnerReference{{Kind: kind, Name: meta.Name, Controller: new(true)}}
}

func (w workload) idsOf(pods int) []string {
	if w.ids == nil {
		return ordinals(0)(pods)
	}
	return w.ids(pods)
}

// ordinals returns a function that counts from the first ordinal.
func ordinals(first int) func(pods int) []string {
	return func(pods int) []string {
		all := make([]int, pods)
		for i := range all {
			all[i] = first + i
		}
		return numbers(all)
	}
}

func numbers(ordinals []int) []string {
	texts := make([]string, len(ordinals))
	for i, ordinal := range ordinals {
		texts[i] = strconv.Itoa(ordinal)
	}
	return texts
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
	spec := w.specPath()
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

// add adds a pod and its check.
func (r *reader) add(at location, pod *corev1.Pod, spec *field.Path) {
	r.check(at, pod, spec)
	r.objects.Pods = append(r.objects.Pods, pod)
}

// check sets the defaults of the pod and adds its check. The check runs after all documents
// are read, because the pod may refer to any of them.
func (r *reader) check(at location, pod *corev1.Pod, spec *field.Path) {
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
func (r *reader) marker(at location, object *unstructured.Unstructured, encoded []byte) {
	if !r.customResource(at, object, crd.PodProbeMarkers, &v1alpha1.PodProbeMarker{}) {
		return
	}
	decoded, _, err := r.decoder.Decode(encoded, nil, nil)
	if err != nil {
		r.addStrictErrors(at, object, err)
		return
	}
	marker, ok := decoded.(*v1alpha1.PodProbeMarker)
	if !ok || !r.named(at, marker) {
		return
	}
	if _, err := plan.Compile(marker); err != nil {
		r.addError(at, err)
		return
	}
	marker.Generation, marker.Status = 1, v1alpha1.PodProbeMarkerStatus{}
	r.objects.Markers = append(r.objects.Markers, *marker)
}
