// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration finds what would change if Seamark took over from OpenKruise in a cluster: values
// that markers leave unset, fields that Seamark refuses, keys that others set too, pods on virtual
// nodes, workloads with fields that Seamark does not serve or treats differently, and a manager of
// OpenKruise whose lease Seamark does not see. CheckBack does the same for a return to OpenKruise.
//
// The package is pure: package survey reads the objects.
package migration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/config"
	"github.com/seamark-dev/seamark/internal/manifest/apikind"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// Severity is how serious a finding is.
type Severity string

// The severities, the most serious one first.
const (
	// Blocks means that something does not work after the migration unless it is changed before.
	Blocks Severity = "blocks"
	// Changes means that something behaves differently after the migration.
	Changes Severity = "changes"
)

// Finding is one thing that changes in a migration.
type Finding struct {
	// Level is the severity.
	Level Severity `json:"level"`
	// Kind, Namespace and Name identify the object. Namespace is empty for cluster-scoped objects.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Field is the path of the field, or empty if the finding concerns the object.
	Field string `json:"field,omitempty"`
	// Place is the file, the line and the column of the field, empty if they are not known.
	Place string `json:"place,omitempty"`
	// Pods are the names of the pods that the finding about a set concerns, the first ten and the number
	// of the others. It is empty if the finding does not depend on pods.
	Pods string `json:"pods,omitempty"`
	// OpenKruise and Seamark are what each of them does.
	OpenKruise string `json:"openKruise"`
	Seamark    string `json:"seamark"`
	// Action is what to do before the migration. It is empty if nothing needs to be done.
	Action string `json:"action,omitempty"`
}

// Object returns the object of the finding as kind, namespace and name.
func (f Finding) Object() string {
	if f.Namespace == "" {
		return f.Kind + " " + f.Name
	}
	return f.Kind + " " + f.Namespace + "/" + f.Name
}

// MarkerKind is the kind of markers.
const MarkerKind = "PodProbeMarker"

// Definition is a CustomResourceDefinition of OpenKruise.
type Definition struct {
	// Name is the name of the CRD, and Kind is the kind that it defines.
	Name, Kind string
	// Stored are the versions in which objects may be stored.
	Stored []string
	// Objects is whether there is at least one object.
	Objects bool
}

// Cluster is what an OpenKruise cluster contains.
type Cluster struct {
	// Markers are the markers, and Objects those of the other kinds that Seamark serves, by kind. Those of a cluster are in
	// versions that Seamark serves.
	Markers []*unstructured.Unstructured
	Objects map[string][]*unstructured.Unstructured
	// Pods are the pods in the namespaces of the markers and sets. They need labels, owner references,
	// managedFields, the containers, the node and the phase.
	Pods []*corev1.Pod
	// Manager is OpenKruise's manager, nil if it is not known.
	Manager *Manager
	// Revisions are the update revisions of the sets. Only CheckBack uses them.
	Revisions []*appsv1.ControllerRevision
	// Virtual are the names of the virtual nodes.
	Virtual sets.Set[string]
	// Definitions are the CRDs of OpenKruise.
	Definitions []Definition
	// Protected are the namespaces and CRDs with the value Cascading of the label that protects from deletion.
	Protected []*metav1.PartialObjectMetadata
	// Files is whether the objects are those of files: then no API server has stored them, and nobody knows whether OpenKruise
	// accepts them.
	Files bool
	// Places are the files, lines and columns of fields of the objects of files, by the object and the field. The namespace
	// of an object is left out if it is "default".
	Places map[string]string
	// Now is the time: schedules are compared for the next year.
	Now time.Time
}

// Add adds the markers and the objects of kinds that Seamark serves, and the definitions of other kinds of OpenKruise. It ignores
// other objects.
func (c *Cluster) Add(objects ...*unstructured.Unstructured) {
	for _, object := range objects {
		gk := object.GroupVersionKind().GroupKind()
		switch {
		case gk == v1alpha1.GroupVersion().WithKind(MarkerKind).GroupKind():
			c.Markers = append(c.Markers, object)
		case kinds.ByGroupKind(gk) != nil:
			if c.Objects == nil {
				c.Objects = map[string][]*unstructured.Unstructured{}
			}
			c.Objects[gk.Kind] = append(c.Objects[gk.Kind], object)
		default:
			c.addOther(object.GroupVersionKind())
		}
	}
}

// addOther adds the definition of a kind that only OpenKruise serves, once.
func (c *Cluster) addOther(gvk runtimeschema.GroupVersionKind) {
	problem := apikind.Check(gvk)
	if problem == nil || problem.Reason != apikind.NotServed {
		return
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	d := Definition{Name: plural.GroupResource().String(), Kind: gvk.Kind, Objects: true}
	if !slices.ContainsFunc(c.Definitions, func(other Definition) bool { return other.Name == d.Name }) {
		c.Definitions = append(c.Definitions, d)
	}
}

// Check returns the findings, the most important ones first, then ordered by object and field. The
// error is about Seamark's own CRDs.
func Check(ctx context.Context, c Cluster) ([]Finding, error) {
	var found []Finding
	markers, findings, err := checkMarkers(ctx, c.Markers)
	if err != nil {
		return nil, err
	}
	found = append(found, findings...)
	found = append(found, checkPods(c, markers)...)
	for _, kind := range kinds.Table() {
		check := hooks()[kind.Kind].check
		if check == nil {
			check = checkSets
		}
		findings, err := check(ctx, c, c.Objects[kind.Kind])
		if err != nil {
			return nil, err
		}
		found = append(found, findings...)
	}
	found = append(found, checkTakeover(c)...)
	found = append(found, checkDefinitions(c.Definitions)...)
	if c.Files {
		withoutClaims(found)
		for i := range found {
			object := strings.Replace(found[i].Object(), " "+metav1.NamespaceDefault+"/", " ", 1)
			found[i].Place = c.Places[object+" "+found[i].Field]
		}
	}
	sortFindings(found)
	return found, nil
}

// What OpenKruise does with an object that its cluster stores.
const (
	accepts = "accepts it"
	follows = "follows the marker"
	injects = "injects the set"
	serves  = "serves "
)

// notChecked is what is known about OpenKruise and an object of a file that Seamark refuses.
const notChecked = "not checked: this command has only the rules of Seamark"

// withoutClaims removes from findings about files what is only known of objects that a cluster stores.
func withoutClaims(found []Finding) {
	for i := range found {
		f := &found[i]
		version, isVersion := strings.CutPrefix(f.OpenKruise, serves)
		isVersion = isVersion && f.Field == "apiVersion" && hooks()[f.Kind].converting[version] == ""
		if isVersion || slices.Contains([]string{accepts, follows, injects}, f.OpenKruise) {
			f.OpenKruise = notChecked
		}
	}
}

func sortFindings(found []Finding) {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(string(a.Level), string(b.Level)), strings.Compare(a.Object(), b.Object()),
			strings.Compare(a.Field, b.Field), strings.Compare(a.OpenKruise, b.OpenKruise))
	})
}

// refused returns the errors with which Seamark's CRD refuses the object.
func refused(ctx context.Context, rules *schema.Schema, object *unstructured.Unstructured) field.ErrorList {
	stored := object.DeepCopy()
	// Controllers write the status, and the API server the metadata.
	delete(stored.Object, "status")
	stored.Object["metadata"] = map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	return rules.Check(ctx, stored.Object)
}

// findingOf returns a finding about a field of the object, or about the object if the path is empty.
func findingOf(level Severity, object *unstructured.Unstructured, path, openKruise, seamark, action string) Finding {
	return Finding{
		Level: level, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		Field: path, OpenKruise: openKruise, Seamark: seamark, Action: action,
	}
}

// describe returns the message of an error about a field of the object, without the field.
func describe(object *unstructured.Unstructured, err *field.Error) string {
	if of, isKnown := apikind.Types()[object.GroupVersionKind()]; isKnown && err.Detail == schema.UnknownField {
		return schema.Unknown(object.Object, err.Field, of)
	}
	return oneLine(err.ErrorBody())
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// checkMarkers returns the markers that Seamark follows, and the findings about all markers.
func checkMarkers(ctx context.Context, objects []*unstructured.Unstructured) ([]*plan.Marker, []Finding, error) {
	rules, err := schema.New(config.Definition("podprobemarkers.apps.kruise.io"), v1alpha1.GroupVersion().Version)
	if err != nil {
		return nil, nil, fmt.Errorf("load the schema of PodProbeMarker: %w", err)
	}
	var markers []*plan.Marker
	var found []Finding
	for _, object := range objects {
		if object.GetDeletionTimestamp() != nil {
			found = append(found, findingOf(Blocks, object, "", "the marker is being deleted", "its marks would stay on the pods",
				"wait until the marker is gone"))
		}
		marker := &v1alpha1.PodProbeMarker{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, marker); err != nil {
			found = append(found, findingOf(Blocks, object, "", accepts, "cannot read it: "+oneLine(err.Error()), "correct the marker"))
			continue
		}
		found = append(found, unset(object, marker)...)
		if plan.CheckAnnotations(marker) != nil || marker.Annotations[v1alpha1.MessageUpdatesAnnotationKey] == "" {
			found = append(found, messages(object, marker)...)
		}
		compiled, err := plan.Compile(marker)
		if err != nil {
			found = append(found, findingOf(Blocks, object, "", follows, "does not follow it: "+oneLine(err.Error()),
				"correct the marker, or delete and create it"))
			continue
		}
		if object.GetNamespace() == excludedNamespace {
			found = append(found, findingOf(Blocks, object, "metadata.namespace", "probes the pods", "probes no pods in "+excludedNamespace+" by default",
				"install Seamark with manager.excludedNamespaces without "+excludedNamespace))
		}
		markers = append(markers, compiled)
		found = append(found, refusedFields(ctx, rules, object)...)
	}
	return markers, found, nil
}

// refusedFields returns the fields of a marker that Seamark's CRD refuses. The marker continues to
// work without them.
func refusedFields(ctx context.Context, rules *schema.Schema, object *unstructured.Unstructured) []Finding {
	var found []Finding
	for _, err := range refused(ctx, rules, object) {
		f := findingOf(Changes, object, err.Field, accepts, "refuses to store it again: "+describe(object, err), "correct the field")
		switch {
		case strings.HasSuffix(err.Field, ".host"):
			f.OpenKruise, f.Seamark, f.Action = "probes this host from the node", "probes the pod itself, and refuses the field", "remove the field"
		case strings.HasSuffix(err.Field, ".terminationGracePeriodSeconds"):
			f.OpenKruise, f.Seamark, f.Action = "ignores it", "refuses the field, because it has no effect", "remove the field"
		case strings.HasSuffix(err.Field, ".timeoutSeconds"):
			f.Level, f.Seamark = Blocks, "does not run the probe: "+describe(object, err)
		}
		found = append(found, f)
	}
	return found
}

// messages returns the finding about a marker whose conditions contain the output of a command or a published body, and that
// does not say how changed messages are written.
func messages(object *unstructured.Unstructured, marker *v1alpha1.PodProbeMarker) []Finding {
	if !slices.ContainsFunc(marker.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool {
		published := p.Probe.HTTPGet != nil && marker.Annotations[v1alpha1.PublishHTTPBodyAnnotationKey] == "true"
		return p.PodConditionType != "" && (p.Probe.Exec != nil || published)
	}) {
		return nil
	}
	return []Finding{findingOf(Changes, object, "", "writes each changed message at once",
		"writes a message that changes within a state three times, then once per minute",
		"keep OpenKruise's behavior with manager.config.messageUpdates=Immediate, or per marker with the annotation "+v1alpha1.MessageUpdatesAnnotationKey)}
}

// kruiseDefault is the value with which OpenKruise runs a field that is not set.
const kruiseDefault = 1

// unset returns the fields that probes leave unset and that the two run with different values.
func unset(object *unstructured.Unstructured, marker *v1alpha1.PodProbeMarker) []Finding {
	defaults := plan.KubernetesDefaults()
	var found []Finding
	for i := range marker.Spec.Probes {
		probe := &marker.Spec.Probes[i]
		var theirs, ours []string
		for _, f := range []struct {
			name       string
			value, our int32
		}{
			{"initialDelaySeconds", probe.Probe.InitialDelaySeconds, defaults.InitialDelaySeconds},
			{"periodSeconds", probe.Probe.PeriodSeconds, defaults.PeriodSeconds},
			{"timeoutSeconds", probe.Probe.TimeoutSeconds, defaults.TimeoutSeconds},
			{"successThreshold", probe.Probe.SuccessThreshold, defaults.SuccessThreshold},
			{"failureThreshold", probe.Probe.FailureThreshold, defaults.FailureThreshold},
		} {
			if f.value == 0 && f.our != kruiseDefault {
				theirs = append(theirs, fmt.Sprintf("%s: %d", f.name, kruiseDefault))
				ours = append(ours, fmt.Sprintf("%s: %d", f.name, f.our))
			}
		}
		if len(theirs) == 0 {
			continue
		}
		found = append(found, findingOf(Changes, object, fmt.Sprintf("spec.probes[%d].probe", i),
			"runs unset "+strings.Join(theirs, ", "), "runs unset "+strings.Join(ours, ", "),
			"set the fields, or keep OpenKruise's values with manager.config.probeDefaults"))
	}
	return found
}
