// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// oldestSupported is the version of Kubernetes in which all expressions must compile: an API
// server accepts a new expression only if the previous version can compile it too.
func oldestSupported() *version.Version { return version.MajorMinor(1, 31) }

func TestExpressionsCompileInTheOldestSupportedVersion(t *testing.T) {
	t.Parallel()
	objects := env.Manifests(t, []string{"config/policies"})
	for _, path := range []string{
		"config/workloads/policy.yaml", "config/cronjobs/policy.yaml", "config/imagepulls/author.yaml", "config/sidecarsets/author.yaml",
	} {
		more := env.Manifests(t, []string{path})
		objects = append(objects, more...)
	}
	seen := 0
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		seen++
		t.Run(object.GetName(), func(t *testing.T) {
			t.Parallel()
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, policy, true))
			compile(t, policy)
		})
	}
	if want := 20; seen != want {
		t.Errorf("config/ has %d policies, want %d", seen, want)
	}
}

// compile compiles every expression of the policy, as the API server does.
func compile(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
	t.Helper()
	set := environment.MustBaseEnvSet(oldestSupported())
	compiler, err := plugincel.NewCompositedCompiler(set)
	expect.NoError(t, err)
	// Message expressions have no authorizer.
	message := plugincel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil}
	full := plugincel.OptionalVariableDeclarations{HasParams: message.HasParams, HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, full, environment.NewExpressions)
		if result.Error != nil {
			t.Errorf("variable %s: %v", v.Name, result.Error)
		}
	}
	check := func(what plugincel.ExpressionAccessor, declared plugincel.OptionalVariableDeclarations) {
		if result := compiler.CompileCELExpression(what, declared, environment.NewExpressions); result.Error != nil {
			t.Errorf("%s: %v", what.GetExpression(), result.Error)
		}
	}
	for i := range policy.Spec.MatchConditions {
		check((*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]), full)
	}
	for _, v := range policy.Spec.Validations {
		check(&validating.ValidationCondition{Expression: v.Expression}, full)
		if v.MessageExpression != "" {
			check(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, message)
		}
	}
}

// TestDeleteProtection deletes objects of all kinds of protection.
func TestDeleteProtection(t *testing.T) {
	t.Parallel()
	server.Apply(t, env.Manifests(t, []string{"config/policies/deletion.yaml"})...)
	namespace := server.Namespace(t)
	meta := func(protection string) metav1.ObjectMeta {
		object := metav1.ObjectMeta{Namespace: namespace, GenerateName: "protected-"}
		if protection != "" {
			object.Labels = map[string]string{"policy.kruise.io/delete-protection": protection}
		}
		return object
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "image"}},
		},
	}
	cloneSet := func(protection string, replicas int32) client.Object {
		return &v1alpha1.CloneSet{ObjectMeta: meta(protection), Spec: v1alpha1.CloneSetSpec{Replicas: &replicas, Selector: selector, Template: pods}}
	}
	deployment := func(protection string, replicas int32) client.Object {
		return &appsv1.Deployment{ObjectMeta: meta(protection), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: pods}}
	}
	service := func(protection string) client.Object {
		return &corev1.Service{ObjectMeta: meta(protection), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	const (
		always     = "is Always: remove the label"
		scale      = "is Cascading and spec.replicas is 2: set it to 0, or remove the label"
		noReplicas = "which has the effect of Always"
	)
	c := server.Client
	probe := cloneSet("Always", 0)
	create(t, c, probe)
	eventually(t, "the policy is in effect", func(ctx context.Context) error {
		return rejectedWith(always)(c.Delete(ctx, probe, client.DryRunAll))
	})
	for name, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"CloneSet, Always":                   {cloneSet("Always", 0), always},
		"CloneSet, Cascading with pods":      {cloneSet("Cascading", 2), scale},
		"CloneSet, Cascading, scaled to 0":   {cloneSet("Cascading", 0), ""},
		"CloneSet, another value":            {cloneSet("Never", 2), ""},
		"CloneSet without the label":         {cloneSet("", 2), ""},
		"Deployment, Cascading with pods":    {deployment("Cascading", 2), scale},
		"Deployment, Cascading, scaled to 0": {deployment("Cascading", 0), ""},
		"DaemonSet, Cascading": {
			&v1alpha1.DaemonSet{ObjectMeta: meta("Cascading"), Spec: v1alpha1.DaemonSetSpec{Selector: selector, Template: pods}}, noReplicas,
		},
		"Service, Always":    {service("Always"), always},
		"Service, Cascading": {service("Cascading"), noReplicas},
		"Namespace, Cascading": {
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "protected-", Labels: meta("Cascading").Labels}}, noReplicas,
		},
	} {
		t.Run(name, func(t *testing.T) {
			create(t, c, test.object)
			expect.Success(t, rejectedWith(test.want)(c.Delete(t.Context(), test.object)))
		})
	}
	collected := cloneSet("Always", 0)
	create(t, c, collected)
	if wrong := rejectedWith(always)(c.DeleteAllOf(t.Context(), &v1alpha1.CloneSet{}, client.InNamespace(namespace))); wrong != nil {
		t.Errorf("deletion of a collection: %v", wrong)
	}
}

func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	expect.NoError(t, c.Create(t.Context(), object))
	copied, is := object.DeepCopyObject().(client.Object)
	if !is {
		t.Fatalf("%T is no object", object)
	}
	t.Cleanup(func() {
		copied.SetLabels(nil)
		unprotected := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"labels": {"policy.kruise.io/delete-protection": null}}}`))
		expect.Success(t, client.IgnoreNotFound(c.Patch(context.Background(), copied, unprotected)))
		expect.Success(t, client.IgnoreNotFound(c.Delete(context.Background(), copied)))
	})
}

// securityDoc returns the lines of docs/security.md and the root of the module.
func securityDoc(t *testing.T) (lines []string, root string) {
	t.Helper()
	root, err := env.ModuleRoot()
	expect.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	expect.NoError(t, err)
	return strings.Split(string(text), "\n"), root
}

// TestDocumentedGrants compares the table of grants with the installed roles.
func TestDocumentedGrants(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, file := range append(env.KindRoles(), "config/rbac", "config/serverless", "config/workloads/grants.yaml", "config/sidecarsets/injector-rbac.yaml") {
		objects := env.Manifests(t, []string{file})
		for _, object := range objects {
			account, is := accountOf(object.GetName())
			if kind := object.GetKind(); !is || kind != "Role" && kind != "ClusterRole" {
				continue
			}
			role := &rbacv1.Role{}
			expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					name := strings.Join(append([]string{resource}, rule.ResourceNames...), " ")
					// Several roles may have the same resource: config/cronjobs creates what config/broadcastjobs serves.
					key, verbs := account+" `"+name+"`", rule.Verbs
					if earlier := want[key]; earlier != "" {
						known := strings.Split(earlier, ", ")
						verbs = append(known, slices.DeleteFunc(verbs, func(verb string) bool { return slices.Contains(known, verb) })...)
					}
					want[key] = strings.Join(verbs, ", ")
				}
			}
		}
	}
	lines, _ := securityDoc(t)
	start := slices.Index(lines, "## Grants")
	if start < 0 {
		t.Fatal("docs/security.md has no section Grants")
	}
	got := map[string]string{}
	for _, line := range lines[start+1:] {
		if strings.HasPrefix(line, "## ") {
			break
		}
		cells := strings.Split(line, " | ")
		if len(cells) == 4 && strings.HasPrefix(cells[1], "`") {
			got[strings.TrimPrefix(cells[0], "| ")+" "+cells[1]] = cells[2]
		}
	}
	expect.Equal(t, "grants in docs/security.md", want, got)
}

// accountOf returns the name in the table for the program whose service account is bound to the
// role, or for the users of a role that nobody is bound to. Roles that are part of view, edit and
// admin are not in the table.
func accountOf(role string) (string, bool) {
	switch role {
	case "seamark-agent":
		return "agent", true
	case "seamark-manager", "seamark-webhook", "seamark-workloads-grants":
		return "manager", true
	case "seamark-workloads-pods":
		return "workloads", true
	case "seamark-injector":
		return "injector", true
	case "seamark-view-states":
		return "viewer of states", true
	}
	ofKind := slices.ContainsFunc(kinds.Table(), func(kind kinds.Kind) bool { return role == "seamark-"+kind.ConfigFolder })
	return "workloads", ofKind
}

// TestDocumentedTestsExist checks that the tests in the document exist.
func TestDocumentedTestsExist(t *testing.T) {
	t.Parallel()
	lines, root := securityDoc(t)
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(strings.Join(lines, "\n"), -1)
	if len(named) == 0 {
		t.Fatal("docs/security.md refers to no test")
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	exists := map[string]bool{}
	for _, folder := range []string{"internal", "cmd", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range declared.FindAllSubmatch(text, -1) {
				exists[string(match[1])] = true
			}
			return err
		})
		expect.NoError(t, err)
	}
	for _, name := range named {
		if !exists[name] {
			t.Errorf("docs/security.md refers to %s, which does not exist", name)
		}
	}
}
