// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolation_test runs all programs with two namespaces, of which one has objects that cannot be decoded.
package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// sample is an object of a kind.
type sample struct {
	version, kind string
	// spec is its specification. good is a part of it, bad is what the hostile user writes in its place.
	spec, good, bad string
	// edit is a merge patch of a correct object.
	edit string
	// condition is the type of the condition that reports the fault, whose message has the text. It is empty if the API
	// server refuses it, because a rule of the CRD fails on the value. Then there is only an event.
	condition, text string
}

func samples() []sample {
	const (
		template = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"main","image":"a:1","env":[{"name":"PORT","value":"8080"}]}]}}`
		set      = `{"replicas":1,"selector":{"matchLabels":{"app":"a"}},"template":` + template
		port     = `"value":"8080"`
		number   = `"value":8080`
		text     = `spec.template.spec.containers[0].env[0].value: 8080 is a number, want a string. Correct it with kubectl edit`
	)
	edit := `{"spec":{"template":{"metadata":{"labels":{"edited":"%s"}}}}}`
	return []sample{
		{"apps.kruise.io/v1alpha1", "CloneSet", set + `}`, port, number, edit, "Decodable", text},
		{"apps.kruise.io/v1beta1", "StatefulSet", set + `,"serviceName":"a"}`, port, number, edit, "Decodable", text},
		{"apps.kruise.io/v1alpha1", "DaemonSet", `{"selector":{"matchLabels":{"app":"a"}},"template":` + template + `}`, port, number, edit, "Decodable", text},
		{
			"apps.kruise.io/v1alpha1", "BroadcastJob", `{"paused":true,"template":` + template + `}`, port, number,
			`{"spec":{"parallelism":%s}}`, "Decodable", text,
		},
		{
			"apps.kruise.io/v1alpha1", "AdvancedCronJob",
			`{"schedule":"0 0 1 1 *","paused":true,"failedJobsHistoryLimit":7,"template":{"broadcastJobTemplate":{"spec":{"template":` + template + `}}}}`,
			`7`, `"7"`, `{"spec":{"startingDeadlineSeconds":%s}}`, "Decodable", `spec.failedJobsHistoryLimit: "7" is a string, want an integer of 32 bits`,
		},
		{
			"apps.kruise.io/v1alpha1", "ImagePullJob", `{"image":"a:1","pullPolicy":{"timeoutSeconds":600},"completionPolicy":{"type":"Never"}}`,
			`600`, `"600"`, `{"spec":{"parallelism":%s}}`, "Decodable", `spec.pullPolicy.timeoutSeconds: "600" is a string, want an integer of 32 bits`,
		},
		{
			"apps.kruise.io/v1alpha1", "SidecarSet",
			`{"namespace":"NAMESPACE","selector":{"matchLabels":{"app":"sidecar"}},"containers":[{"name":"side","image":"s:1","command":["sh"]}]}`,
			`["sh"]`, `"sh"`, `{"spec":{"injectionStrategy":{"paused":false},"selector":{"matchLabels":{"edited":"%s"}}}}`, "Decodable",
			`spec.containers[0].command: "sh" is a string, want a list`,
		},
		{
			"apps.kruise.io/v1alpha1", "PodProbeMarker",
			`{"selector":{"matchLabels":{"app":"a"}},"probes":[{"name":"p","containerName":"main","podConditionType":"a.b/c","probe":{"exec":{"command":["true"]}}}]}`,
			`"main"`, `5`, `{"spec":{"probes":[{"name":"q%s","containerName":"main","podConditionType":"a.b/c","probe":{"exec":{"command":["true"]}}}]}}`,
			"", `spec.probes[0].containerName: 5 is a number, want a string`,
		},
	}
}

// in returns the sample in a namespace.
func (s sample) in(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	expect.NoError(t, object.UnmarshalJSON([]byte(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q},"spec":%s}`,
		s.version, s.kind, namespace, namespace, strings.ReplaceAll(s.spec, "NAMESPACE", namespace)))))
	if s.kind == "SidecarSet" {
		object.SetNamespace("")
	}
	return object
}

// change changes the specification of a stored object.
func (s sample) change(t *testing.T, object *unstructured.Unstructured, from, to string) error {
	t.Helper()
	spec := &unstructured.Unstructured{}
	expect.NoError(t, spec.UnmarshalJSON([]byte(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"spec":%s}`, s.version, s.kind,
		strings.ReplaceAll(strings.Replace(s.spec, from, to, 1), "NAMESPACE", object.GetName())))))
	expect.NoError(t, server.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopy()
	for field, value := range spec.Object["spec"].(map[string]any) {
		expect.NoError(t, unstructured.SetNestedField(object.Object, value, "spec", field))
	}
	return server.Client.Patch(t.Context(), object, client.MergeFrom(before))
}

// observed waits until the status is about the current generation.
func observed(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	env.WorldOf(t, server, "").Shows(object, object.GetKind()+" "+object.GetName()+" is observed", func() error {
		seen, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		return await.ErrorIf(seen != object.GetGeneration(), "generation %d of %d, status %v", seen, object.GetGeneration(), object.Object["status"])
	})
}

// reported waits until the condition and an event report the fault, or until the condition does not any more.
func (s sample) reported(t *testing.T, object *unstructured.Unstructured, want bool) {
	t.Helper()
	env.WorldOf(t, server, "").Shows(object, fmt.Sprintf("%s is reported: %t", s.kind, want), func() error {
		list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		is := slices.ContainsFunc(list, func(each any) bool {
			c, _ := each.(map[string]any)
			return c["type"] == s.condition && c["status"] == "False" && strings.Contains(fmt.Sprint(c["message"]), s.text)
		})
		return await.ErrorIf(s.condition != "" && is != want, "%v", list)
	})
	if !want {
		return
	}
	env.WorldOf(t, server, "").Until("event of "+s.kind, func() error {
		var events corev1.EventList
		err := server.Client.List(t.Context(), &events)
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.UID == object.GetUID() && strings.Contains(e.Message, s.text)
		}) {
			err = errors.Join(err, errors.New("no event"))
		}
		return err
	})
}

// pods returns the UIDs of the pods of a namespace.
func pods(t *testing.T, namespace string) (found []types.UID) {
	t.Helper()
	var list corev1.PodList
	expect.NoError(t, server.Client.List(t.Context(), &list, client.InNamespace(namespace)))
	for i := range list.Items {
		found = append(found, list.Items[i].UID)
	}
	slices.Sort(found)
	return found
}

// TestObjectsThatCannotBeDecoded makes one object of each kind one that cannot be decoded, while those of another
// namespace are served, also after a restart, and repairs it.
func TestObjectsThatCannotBeDecoded(t *testing.T) {
	start := install(t)
	stop := start()
	honest, hostile := server.Namespace(t), server.Namespace(t)
	objects := map[string][2]*unstructured.Unstructured{}
	for _, s := range samples() {
		pair := [2]*unstructured.Unstructured{s.in(t, honest), s.in(t, hostile)}
		for _, object := range pair {
			expect.NoError(t, server.Client.Create(t.Context(), object))
			t.Cleanup(func() { _ = server.Client.Delete(context.Background(), object) })
		}
		objects[s.kind] = pair
	}
	for _, pair := range objects {
		observed(t, pair[0])
		observed(t, pair[1])
	}
	before := pods(t, hostile)
	restore := relax(t)
	for _, s := range samples() {
		env.WorldOf(t, server, "").Until("break "+s.kind, func() error { return s.change(t, objects[s.kind][1], s.good, s.bad) })
	}
	restore()
	for turn := range 2 {
		for _, s := range samples() {
			s.reported(t, objects[s.kind][1], true)
			edit := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, s.edit, strconv.Itoa(turn+1)))
			expect.NoError(t, server.Client.Patch(t.Context(), objects[s.kind][0], edit))
		}
		for _, pair := range objects {
			observed(t, pair[0])
		}
		if turn == 0 {
			stop()
			stop = start()
		}
	}
	if after := pods(t, hostile); !slices.Equal(before, after) {
		t.Errorf("pods %v of the objects that cannot be decoded became %v", before, after)
	}
	for _, s := range samples() {
		expect.NoError(t, s.change(t, objects[s.kind][1], "", ""))
		s.reported(t, objects[s.kind][1], false)
		observed(t, objects[s.kind][1])
	}
}

// relax removes the schemas until the returned function is called.
func relax(t *testing.T) (restore func()) {
	t.Helper()
	crds, err := env.ReadCRDs("")
	expect.NoError(t, err)
	crds = slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return !slices.ContainsFunc(samples(), func(s sample) bool { return s.kind == crd.Spec.Names.Kind })
	})
	put := func(schema func(stored apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps) {
		for _, crd := range crds {
			stored := &apiextensionsv1.CustomResourceDefinition{}
			env.WorldOf(t, server, "").Until("replace the CRD "+crd.Name, func() error {
				if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), stored); err != nil {
					return err
				}
				for i := range stored.Spec.Versions {
					*stored.Spec.Versions[i].Schema.OpenAPIV3Schema = schema(*crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
				}
				return server.Client.Update(t.Context(), stored)
			})
		}
	}
	put(func(apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	})
	return func() {
		put(func(schema apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps { return schema })
	}
}

// install returns a function that starts all programs of the control plane, which returns one that stops them.
func install(t *testing.T) (start func() (stop func())) {
	t.Helper()
	own := program.InstallInjector(t, server)
	cfg := program.Install(
		t, server, "config/sidecarsets/rbac.yaml", "config/daemonsets/rbac.yaml", "config/broadcastjobs/rbac.yaml",
		"config/cronjobs/rbac.yaml", "config/imagepulls/rbac.yaml",
	)
	marking := server.Component(t, manager.Name)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	expect.NoError(t, server.Client.Create(t.Context(), node))
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), node) })
	return func() func() {
		stops := []func(){
			program.StartInjector(t, own, env.FreeAddress(t), certificates.DefaultLifetimes()),
			program.StartManager(t, manager.Options{Config: marking}), program.Start(t, cfg, func(o *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
				for _, each := range []*configv1alpha1.WorkloadController{
					&enabled.DaemonSet, &enabled.BroadcastJob, &enabled.AdvancedCronJob, &enabled.ImagePullJob, &enabled.SidecarSet,
				} {
					each.Enabled = new(true)
				}
				o.InjectorURL = "https://localhost:9"
			})}
		return func() {
			for _, stop := range stops {
				stop()
			}
		}
	}
}
