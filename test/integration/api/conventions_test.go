// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api_test tests what Seamark installs in the API server: which PodProbeMarkers are
// accepted and rejected, the cost of the CRDs, and the rights of the service accounts.
package api_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestCRDsFollowTheConventions checks that every property has a description and every list a
// type, that a status is a subresource, and the short names.
func TestCRDsFollowTheConventions(t *testing.T) {
	t.Parallel()
	crds, err := env.ReadCRDs("")
	expect.NoError(t, err)
	shortNames := map[string][]string{
		"podprobemarkers": {"ppm"}, "nodepodprobes": {"npp"}, "probeplans": {"ppl"}, "probereports": {"prr"},
		"clonesets": {"clone"}, "statefulsets": {"sts", "asts"}, "advancedcronjobs": {"acj"}, "daemonsets": {"daemon", "ads"}, "broadcastjobs": {"bcj"},
	}
	for _, crd := range crds {
		t.Run(crd.Spec.Names.Plural, func(t *testing.T) {
			t.Parallel()
			if want := shortNames[crd.Spec.Names.Plural]; !slices.Equal(crd.Spec.Names.ShortNames, want) {
				t.Errorf("short names %v, want %v", crd.Spec.Names.ShortNames, want)
			}
			version := crd.Spec.Versions[0]
			if len(version.AdditionalPrinterColumns) == 0 {
				t.Error("no printer columns")
			}
			properties := version.Schema.OpenAPIV3Schema.Properties
			_, status := properties["status"]
			if subresource := version.Subresources != nil && version.Subresources.Status != nil; subresource != status {
				t.Errorf("has a status: %t, has a status subresource: %t", status, subresource)
			}
			for part, property := range properties {
				if part == "apiVersion" || part == "kind" || part == "metadata" {
					continue
				}
				for _, problem := range schemaProblems(part, property, false) {
					t.Error(problem)
				}
			}
		})
	}
}

// schemaProblems returns the problems of a property and those below it. The fields of types of Kubernetes have its
// descriptions, or none.
func schemaProblems(path string, schema apiextensionsv1.JSONSchemaProps, embedded bool) []string {
	var problems []string
	name := path[strings.LastIndex(path, ".")+1:]
	if !embedded && !beginsWith(schema.Description, name) && !strings.HasSuffix(name, "]") {
		problems = append(problems, path+": the description does not begin with the name")
	}
	embedded = embedded || slices.Contains([]string{"probe", "startup", "jobTemplate", "broadcastJobTemplate", "active"}, name) || isOpen(&schema)
	if schema.Items != nil {
		if !embedded && schema.XListType == nil && !isOpen(schema.Items.Schema) {
			problems = append(problems, path+": list without a type")
		}
		problems = append(problems, schemaProblems(path+"[]", *schema.Items.Schema, embedded)...)
	}
	for property, below := range schema.Properties {
		problems = append(problems, schemaProblems(path+"."+property, below, embedded)...)
	}
	return problems
}

// isOpen reports whether the schema is that of a type of Kubernetes, whose later versions may have more fields.
func isOpen(schema *apiextensionsv1.JSONSchemaProps) bool {
	return schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
}

func beginsWith(doc, name string) bool {
	first, _, _ := strings.Cut(doc, " ")
	return first == name
}

// server is the API server that the tests of this package share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server, env.Types()) }

// TestDefaultInstallationIsAccepted renders config/default as kubectl apply -k does.
func TestDefaultInstallationIsAccepted(t *testing.T) {
	t.Parallel()
	root, err := env.ModuleRoot()
	expect.NoError(t, err)
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", "default"))
	expect.NoError(t, err)
	text, err := rendered.AsYaml()
	expect.NoError(t, err)
	objects, err := env.ParseManifests(text)
	expect.NoError(t, err)
	e := env.Start(t, env.NoCRDs())
	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
		e.Apply(t, object)
	}
	for kind, want := range map[string]int{"CustomResourceDefinition": 4, "Deployment": 1, "DaemonSet": 1, "ServiceAccount": 2} {
		if kinds[kind] != want {
			t.Errorf("config/default has %d objects of kind %s, want %d", kinds[kind], kind, want)
		}
	}
}

// TestConditionsNeedOnlyATypeAndAStatus writes, to each kind with conditions, those that clients of OpenKruise's types write:
// one that has nothing else, and one with the zero values of Go. The object with them takes further writes.
func TestConditionsNeedOnlyATypeAndAStatus(t *testing.T) {
	t.Parallel()
	zero := map[string]any{"type": "Zero", "status": "Unknown", "reason": "", "message": "", "lastTransitionTime": nil}
	for name, manifest := range map[string]string{
		"CloneSet": smallCloneSet, "StatefulSet": smallStatefulSet, "DaemonSet": smallDaemonSet, "BroadcastJob": smallBroadcastJob,
		"AdvancedCronJob": validCronJob, "ImagePullJob": validPullJob, "SidecarSet": validSidecarSet, "PodProbeMarker": validMarker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parsed(t, manifest, server.Namespace(t), edit{"metadata.name", "conditions"})
			expect.NoError(t, server.Client.Create(t.Context(), object))
			status := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}, zero}}
			if name == "ImagePullJob" {
				status["desired"] = int64(1) // OpenKruise requires it, too.
			}
			object.Object["status"] = status
			expect.NoError(t, server.Client.Status().Update(t.Context(), object))
			stored, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
			if len(stored) != 2 {
				t.Errorf("conditions %v", stored)
			}
			object.SetLabels(map[string]string{"again": "yes"})
			expect.Success(t, server.Client.Update(t.Context(), object))
		})
	}
}

// TestInitializedMarkersAreAccepted creates the markers that `seamark init` writes.
func TestInitializedMarkersAreAccepted(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"exec": {"--exec", "cat /tmp/job", "-l", "app=worker", "--label", "busy"},
		"script": {
			"--exec", `[ ! -e "$DIR/closed" ] && echo "it's open: yes"`, "-l", "app in (a,b),!old", "--name", "shop", "--container",
			"shop", "--label", "open=yes,no",
		},
		"http": {"--http", "/primary:http", "-l", "app=database", "--label", "role=primary,secondary",
			"--annotation", "controller.kubernetes.io/pod-deletion-cost=10,-10", "--condition", "example.com/primary"},
		"tcp":  {"--tcp", "6379", "-l", "app=cache", "--condition", "example.com/open", "--initial-delay", "1m", "--period", "5m", "--timeout", "5m"},
		"grpc": {"--grpc", "9090/intake", "-l", "app=queue", "--annotation", "note=12:30, \n#x", "--success-threshold", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			command := cli.New(streams, "seamark", "test")
			command.SetArgs(append([]string{"init"}, args...))
			if err := command.ExecuteContext(t.Context()); err != nil {
				t.Fatalf("%v: %s", err, errOut)
			}
			objects, err := env.ParseManifests(out.Bytes())
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d objects, error %v in\n%s", len(objects), err, out)
			}
			objects[0].SetNamespace(server.Namespace(t))
			if err := create(t.Context(), objects[0]); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestColumnsShowProblems checks the columns of `kubectl get podprobemarkers`. Markers that
// OpenKruise has reconciled have no conditions.
func TestColumnsShowProblems(t *testing.T) {
	t.Parallel()
	condition := func(kind, status, reason string) any {
		return map[string]any{
			"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}
	}
	for name, tc := range map[string]struct {
		conditions []any
		want       any
	}{
		"no conditions": {nil, nil},
		"fine": {[]any{
			condition(v1alpha1.ConditionProbesResolved, "True", "Resolved"),
			condition(v1alpha1.ConditionMarksExclusive, "True", "Exclusive"),
		}, nil},
		"conflict": {[]any{
			condition(v1alpha1.ConditionProbesResolved, "True", "Resolved"),
			condition(v1alpha1.ConditionMarksExclusive, "False", "KeyConflict"),
		}, "KeyConflict"},
		"two problems": {[]any{
			condition(v1alpha1.ConditionProbesResolved, "False", "ContainerNotFound"),
			condition(v1alpha1.ConditionMarksExclusive, "False", "KeyConflict"),
		}, "ContainerNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := marker(t, server.Namespace(t))
			expect.NoError(t, server.Client.Create(t.Context(), stored))
			stored.Object["status"] = map[string]any{
				"matchedPods": int64(2), "succeeded": int64(1), "failed": int64(0), "unknown": int64(3), "conditions": tc.conditions,
			}
			if tc.conditions == nil {
				unstructured.RemoveNestedField(stored.Object, "status", "conditions")
			}
			expect.NoError(t, server.Client.Status().Update(t.Context(), stored))
			want := map[string]any{
				"Name": stored.GetName(), "Matched": int64(2), "Succeeded": int64(1), "Failed": int64(0), "Unknown": int64(3), "Problem": tc.want,
			}
			expectColumns(t, v1alpha1.GroupVersion(), "podprobemarkers", stored, want)
		})
	}
}

// TestColumnsOfPlansAndReports checks the columns of `kubectl get nodepodprobes,probeplans,probereports`.
func TestColumnsOfPlansAndReports(t *testing.T) {
	t.Parallel()
	plan := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "columns"}}
	part := &seamarkv1alpha1.ProbePlan{
		ObjectMeta: metav1.ObjectMeta{Name: "columns.7"}, NodeName: "columns", Pods: []v1alpha1.PodProbe{{Namespace: "ns", Name: "pod-0", UID: "u"}},
	}
	report := slice("columns", "columns.0", 3, "Succeeded")
	for _, object := range []client.Object{plan, part, report} {
		expect.NoError(t, server.Client.Create(t.Context(), object))
	}
	unreported := columns(t, v1alpha1.GroupVersion(), "nodepodprobes", plan)
	plan.Status = v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, Pods: 3, Probes: 4, ProbeReports: true}
	expect.NoError(t, server.Client.Status().Update(t.Context(), plan))
	inForce := columns(t, v1alpha1.GroupVersion(), "nodepodprobes", plan)
	first := columns(t, seamarkv1alpha1.GroupVersion(), "probereports", report)
	report.Pods = nil
	expect.NoError(t, server.Client.Update(t.Context(), report))
	empty := columns(t, seamarkv1alpha1.GroupVersion(), "probereports", report)
	planned := columns(t, seamarkv1alpha1.GroupVersion(), "probeplans", part)
	for _, row := range []map[string]any{unreported, inForce, planned, first, empty} {
		if _, ok := row["Age"].(string); !ok {
			t.Errorf("age %v, want a string", row["Age"])
		}
		delete(row, "Age")
	}
	for _, row := range []map[string]any{first, empty} {
		if written, ok := row["Written"].(string); !ok || !strings.HasSuffix(written, "s") {
			t.Errorf("written %v, want seconds", row["Written"])
		}
		delete(row, "Written")
	}
	got := []map[string]any{unreported, inForce, planned, first, empty}
	want := []map[string]any{
		{"Name": "columns", "Pods": nil, "Probes": nil, "In force": nil},
		{"Name": "columns", "Pods": int64(3), "Probes": int64(4), "In force": int64(1)},
		{"Name": "columns.7", "Node": "columns", "First pod": "pod-0", "Generation": int64(1)},
		{"Name": "columns.0", "Node": "columns", "First pod": "pod-0"},
		{"Name": "columns.0", "Node": "columns", "First pod": nil},
	}
	expect.Equal(t, "columns", want, got)
}

// expectColumns compares the columns of an object besides its age.
func expectColumns(t *testing.T, version schema.GroupVersion, resource string, object client.Object, want map[string]any) {
	t.Helper()
	got := columns(t, version, resource, object)
	maps.DeleteFunc(got, func(name string, _ any) bool { return strings.EqualFold(name, "age") })
	expect.Equal(t, fmt.Sprintf("columns of %s", resource), want, got)
}

// columns returns the columns of an object by name, as kubectl receives them.
func columns(t *testing.T, version schema.GroupVersion, resource string, object client.Object) map[string]any {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
	config.ContentType = "application/json"
	kubernetes, err := rest.RESTClientFor(config)
	expect.NoError(t, err)
	table := &metav1.Table{}
	err = kubernetes.Get().NamespaceIfScoped(object.GetNamespace(), object.GetNamespace() != "").Resource(resource).Name(object.GetName()).
		Do(t.Context()).Into(table)
	expect.NoError(t, err)
	found := map[string]any{}
	for i, definition := range table.ColumnDefinitions {
		found[definition.Name] = table.Rows[0].Cells[i]
	}
	return found
}
