// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	validation "k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
	"github.com/seamark-dev/seamark/test/model/apiserver"
)

// userManager is the field manager of users.
const userManager = "kubectl"

// field is a field of a pod that has owners: a label, an annotation, or a condition or a field of one.
type field = oracle.Mark

// configuration is what an apply to the status of a pod contains.
type configuration struct {
	Metadata struct {
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		Conditions []json.RawMessage `json:"conditions"`
	} `json:"status"`
}

// applyMarks does what a forced server-side apply to the status of a pod does. It changes the pod unless it
// is a dry run.
func (s *server) applyMarks(by string, key types.NamespacedName, body []byte, dryRun bool) (client.Object, error) {
	stored, err := s.Get(pods, key)
	if err != nil {
		return nil, err
	}
	var config configuration
	if err := json.Unmarshal(body, &config); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if config.Metadata.UID != stored.GetUID() {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, key.Name, validation.ErrorList{
			validation.Invalid(validation.NewPath("metadata", "uid"), config.Metadata.UID, "field is immutable"),
		})
	}
	if dryRun {
		return stored, nil
	}
	return s.Update(by, pods, key, preconditions{Version: config.Metadata.ResourceVersion}, func(o client.Object) error {
		pod := o.(*corev1.Pod) //nolint:forcetypeassert // of this kind
		return s.own(pod, &config)
	})
}

// own replaces what Seamark owns of the pod.
func (s *server) own(pod *corev1.Pod, config *configuration) error {
	all := s.ownersOf(pod.UID)
	before, after := all[v1alpha1.FieldManager], map[field]bool{}
	set := func(kind string, values map[string]string, wanted map[string]string) map[string]string {
		for name, value := range wanted {
			f := field{Kind: kind, Name: name}
			after[f] = true
			if values[name] != value {
				delete(all[userManager], f)
			}
			if values == nil {
				values = map[string]string{}
			}
			values[name] = value
		}
		return values
	}
	pod.Labels = set(oracle.Label, pod.Labels, config.Metadata.Labels)
	pod.Annotations = set(oracle.Annotation, pod.Annotations, config.Metadata.Annotations)
	for _, raw := range config.Status.Conditions {
		var wanted corev1.PodCondition
		var present map[string]json.RawMessage
		if err := json.Unmarshal(raw, &wanted); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if err := json.Unmarshal(raw, &present); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		after[field{Kind: oracle.Condition, Name: string(wanted.Type)}] = true
		for sub := range present {
			after[field{Kind: oracle.Condition, Name: string(wanted.Type), Field: sub}] = true
		}
		setCondition(pod, wanted)
	}
	for f := range before {
		if !after[f] && f.Field == "" && !all[userManager][f] {
			removeField(pod, f)
		}
	}
	all[v1alpha1.FieldManager] = after
	pod.ManagedFields = s.managedFields(pod.UID)
	return nil
}

func setCondition(pod *corev1.Pod, wanted corev1.PodCondition) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == wanted.Type {
			pod.Status.Conditions[i] = wanted
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, wanted)
}

func removeField(pod *corev1.Pod, f field) {
	switch f.Kind {
	case oracle.Label:
		delete(pod.Labels, f.Name)
	case oracle.Annotation:
		delete(pod.Annotations, f.Name)
	default:
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return string(c.Type) == f.Name })
	}
}

// removeMarks does what a strategic merge patch of the status does that removes labels, annotations and
// conditions, whoever owns them.
func (s *server) removeMarks(by string, key types.NamespacedName, body []byte) (client.Object, error) {
	var patch struct {
		Metadata struct {
			ResourceVersion     string             `json:"resourceVersion"`
			Labels, Annotations map[string]*string `json:",omitempty"`
		} `json:"metadata"`
		Status struct {
			Conditions []struct {
				Type string `json:"type"`
			} `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.Update(by, pods, key, preconditions{Version: patch.Metadata.ResourceVersion}, func(o client.Object) error {
		pod := o.(*corev1.Pod) //nolint:forcetypeassert // of this kind
		var removed []field
		for name := range patch.Metadata.Labels {
			removed = append(removed, field{Kind: oracle.Label, Name: name})
		}
		for name := range patch.Metadata.Annotations {
			removed = append(removed, field{Kind: oracle.Annotation, Name: name})
		}
		for _, c := range patch.Status.Conditions {
			removed = append(removed, field{Kind: oracle.Condition, Name: c.Type})
		}
		for _, f := range removed {
			removeField(pod, f)
			for _, fields := range s.ownersOf(pod.UID) {
				maps.DeleteFunc(fields, func(g field, _ bool) bool { return g.Kind == f.Kind && g.Name == f.Name })
			}
		}
		pod.ManagedFields = s.managedFields(pod.UID)
		return nil
	})
}

// label lets a user set a label, or remove it if the value is empty.
func (s *server) label(pod *corev1.Pod, name, value string) {
	f := field{Kind: oracle.Label, Name: name}
	all := s.ownersOf(pod.UID)
	if before, found := pod.Labels[name]; value == "" || found && before != value {
		delete(all[v1alpha1.FieldManager], f)
	}
	if delete(all[userManager], f); value == "" {
		delete(pod.Labels, name)
	} else {
		all[userManager][f] = true
		pod.Labels[name] = value
	}
	pod.ManagedFields = s.managedFields(pod.UID)
}

func (s *server) ownersOf(pod types.UID) map[string]map[field]bool {
	if s.owners[pod] == nil {
		s.owners[pod] = map[string]map[field]bool{userManager: {}, v1alpha1.FieldManager: {}}
	}
	return s.owners[pod]
}

// managedFields returns the entries of the pod.
func (s *server) managedFields(pod types.UID) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	add := func(entry metav1.ManagedFieldsEntry) {
		if fields := s.owners[pod][entry.Manager]; len(fields) > 0 {
			entry.FieldsType, entry.FieldsV1, entry.APIVersion = "FieldsV1", metav1.NewFieldsV1(encodeFields(fields)), "v1"
			entries = append(entries, entry)
		}
	}
	add(metav1.ManagedFieldsEntry{Manager: userManager, Operation: metav1.ManagedFieldsOperationUpdate})
	add(metav1.ManagedFieldsEntry{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"})
	return entries
}

// encodeFields returns the fields in the form of FieldsV1.
func encodeFields(fields map[field]bool) string {
	lists := map[string][]string{}
	for _, f := range slices.SortedFunc(maps.Keys(fields), func(a, b field) int {
		return cmp.Compare(a.Kind+"\x00"+a.Name+"\x00"+a.Field, b.Kind+"\x00"+b.Name+"\x00"+b.Field)
	}) {
		switch {
		case f.Field != "":
			continue
		case f.Kind != oracle.Condition:
			lists[f.Kind] = append(lists[f.Kind], fmt.Sprintf("%q:{}", "f:"+f.Name))
			continue
		}
		subs := []string{`".":{}`}
		for g := range fields {
			if g.Kind == f.Kind && g.Name == f.Name && g.Field != "" {
				subs = append(subs, fmt.Sprintf("%q:{}", "f:"+g.Field))
			}
		}
		slices.Sort(subs)
		lists[f.Kind] = append(lists[f.Kind], fmt.Sprintf("%q:{%s}", fmt.Sprintf("k:{\"type\":%q}", f.Name), strings.Join(subs, ",")))
	}
	var metadata, all []string
	for _, list := range []string{oracle.Annotation, oracle.Label} {
		if len(lists[list]) > 0 {
			metadata = append(metadata, fmt.Sprintf("%q:{%s}", "f:"+list+"s", strings.Join(lists[list], ",")))
		}
	}
	if len(metadata) > 0 {
		all = append(all, fmt.Sprintf(`"f:metadata":{%s}`, strings.Join(metadata, ",")))
	}
	if len(lists[oracle.Condition]) > 0 {
		all = append(all, fmt.Sprintf(`"f:status":{"f:conditions":{%s}}`, strings.Join(lists[oracle.Condition], ",")))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// kind is a kind of objects on the simulated API server.
type kind int

const (
	nodes kind = iota
	pods
	markers
	plans
	slicesOfPlans
	reports
	kindCount
)

// Resource returns the resource of the kind.
func (k kind) Resource() schema.GroupResource {
	return schema.GroupResource{Resource: [...]string{"nodes", "pods", "podprobemarkers", "nodepodprobes", "probeplans", "probereports"}[k]}
}

func (k kind) String() string { return k.Resource().Resource }

// kindOf returns the kind of an object. Nodes may have their metadata only.
func kindOf(object any) kind {
	switch object.(type) {
	case *corev1.Node, *metav1.PartialObjectMetadata:
		return nodes
	case *corev1.Pod, *corev1.PodList:
		return pods
	case *v1alpha1.PodProbeMarker, *v1alpha1.PodProbeMarkerList:
		return markers
	case *v1alpha1.NodePodProbe, *v1alpha1.NodePodProbeList:
		return plans
	case *seamarkv1alpha1.ProbePlan:
		return slicesOfPlans
	case *seamarkv1alpha1.ProbeReport:
		return reports
	default:
		panic(fmt.Sprintf("unexpected %T", object))
	}
}

// server is the API server, and who owns which fields of pods.
type server struct {
	*apiserver.Server[kind]
	// owners are the fields of pods by field manager: see own.
	owners map[types.UID]map[string]map[field]bool
}

func newServer() *server {
	return &server{Server: apiserver.New(kindCount, time.Now, specChanged), owners: map[types.UID]map[string]map[field]bool{}}
}

type (
	event         = apiserver.Event
	preconditions = apiserver.Preconditions
)

// specChanged reports whether a change increases the generation.
func specChanged(before, after client.Object) bool {
	if (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) {
		return true
	}
	switch after := after.(type) {
	case *v1alpha1.PodProbeMarker:
		return !equality.Semantic.DeepEqual(before.(*v1alpha1.PodProbeMarker).Spec, after.Spec) //nolint:forcetypeassert // same kind
	case *v1alpha1.NodePodProbe:
		return !equality.Semantic.DeepEqual(before.(*v1alpha1.NodePodProbe).Spec, after.Spec) //nolint:forcetypeassert // same kind
	case *seamarkv1alpha1.ProbePlan:
		return !equality.Semantic.DeepEqual(before.(*seamarkv1alpha1.ProbePlan).Pods, after.Pods) //nolint:forcetypeassert // same kind
	case *seamarkv1alpha1.ProbeReport:
		return !equality.Semantic.DeepEqual(before.(*seamarkv1alpha1.ProbeReport).Pods, after.Pods) //nolint:forcetypeassert // same kind
	default:
		return false
	}
}

// collect removes the objects whose Node is gone, as the garbage collector does.
func (s *server) collect() {
	alive := map[types.UID]bool{}
	for _, node := range s.List(nodes) {
		alive[node.GetUID()] = true
	}
	for _, k := range []kind{plans, slicesOfPlans, reports} {
		for _, o := range s.List(k) {
			if owners := o.GetOwnerReferences(); len(owners) > 0 && !alive[owners[0].UID] {
				s.Remove("gc", k, client.ObjectKeyFromObject(o))
			}
		}
	}
}

func clone[T client.Object](o T) T { return apiserver.Clone(o) }
