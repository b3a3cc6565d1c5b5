// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/cli/check/checks"
)

// runs returns facts of seamark-workloads with the controllers, which must not use the resource, and the CRDs.
func runs(controllers, forbidden string, crds ...string) func(*testing.T, *checks.Facts) {
	return func(t *testing.T, f *checks.Facts) {
		t.Helper()
		runWorkloads(t, f, "controllers: {"+strings.ReplaceAll(controllers, ",", ": {enabled: true}, ")+": {enabled: true}}")
		for _, name := range crds {
			f.CRDs.Value = append(f.CRDs.Value, definition(t, name+".apps.kruise.io"))
		}
		allow(t, f, func(p checks.Permission) bool { return p.Attributes.Resource != forbidden })
	}
}

// lacks returns the results if the CRD of a resource does not exist, and so many permissions are missing.
func lacks(folder, crd, missing, resource string) string {
	number, more, _ := strings.Cut(missing, " and ")
	return fmt.Sprintf("failed crd/%[1]s.apps.kruise.io: the CRD does not exist\n"+
		"  kubectl apply --server-side --force-conflicts -f config/crd/%[2]s/apps.kruise.io_%[1]s.yaml\n"+
		"failed permissions/seamark-workloads: the account lacks %[3]s permissions: get %[4]s, list %[4]s, watch %[4]s and %[5]s more\n"+
		"  install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/%[2]s\n", crd, folder, number, resource, more)
}

// TestControllers checks that the CRD, the permissions and the policy of a kind are required only if its controller is enabled.
func TestControllers(t *testing.T) {
	const jobs = "failed policy/seamark-workloads-jobs: the policy does not exist: seamark-workloads could create and delete all Jobs\n" +
		"  helm upgrade, or kubectl apply --server-side -k config/cronjobs\n"
	const author = "who can write ImagePullJobs can use the pull secrets of a namespace without the right to create pods\n" +
		"  set workloads.imagePullJobAuthorEnforcement=Deny in the chart, or kubectl apply --server-side -k config/imagepulls\n"
	enforce := func(name string, action admissionregistrationv1.ValidationAction, run func(*testing.T, *checks.Facts)) func(*testing.T, *checks.Facts) {
		return func(t *testing.T, f *checks.Facts) {
			p, b := policy(name, action)
			f.Policies.Value, f.Bindings.Value = append(f.Policies.Value, p), append(f.Bindings.Value, b)
			run(t, f)
		}
	}
	checkProblems(t, map[string]problem{
		"DaemonSets":              {runs("daemonSet", "", "daemonsets"), ""},
		"DaemonSets are disabled": {runs("cloneSet", "daemonsets"), ""},
		"DaemonSets without permissions and CRD": {
			runs("daemonSet", "daemonsets"), lacks("daemonsets", "daemonsets", "5 of 43 and 2", "daemonsets.apps.kruise.io"),
		},
		"BroadcastJobs without permissions and CRD": {
			runs("broadcastJob", "broadcastjobs"), lacks("broadcastjobs", "broadcastjobs", "6 of 44 and 3", "broadcastjobs.apps.kruise.io"),
		},
		"DaemonSets with AdvancedCronJobs": {
			runs("daemonSet,advancedCronJob", "jobs", "daemonsets"),
			strings.Replace(
				lacks("cronjobs", "advancedcronjobs", "5 of 58 and 2", "jobs.batch"), ", or kubectl apply --server-side -k config/cronjobs", "", 1,
			) + jobs,
		},
		"AdvancedCronJobs without permissions, CRD and policy": {
			runs("advancedCronJob", "jobs"), lacks("cronjobs", "advancedcronjobs", "5 of 53 and 2", "jobs.batch") + jobs,
		},
		"AdvancedCronJobs": {
			enforce("seamark-workloads-jobs", admissionregistrationv1.Deny, runs("advancedCronJob", "", "advancedcronjobs")), "",
		},
		"AdvancedCronJobs are disabled": {runs("cloneSet", "jobs"), ""},
		"ImagePullJobs without permissions, CRD and policy": {
			runs("imagePullJob", "imagepulljobs"), lacks("imagepulls", "imagepulljobs", "8 of 46 and 5", "imagepulljobs.apps.kruise.io") +
				"warning policy/seamark-imagepulljob-author: the policy does not exist: " + author,
		},
		"ImagePullJobs": {
			enforce("seamark-imagepulljob-author", admissionregistrationv1.Warn, runs("imagePullJob", "", "imagepulljobs")),
			"warning policy/seamark-imagepulljob-author: violations are not rejected (Warn): " + author,
		},
	})
}

// What is enabled is also known from what is installed, and the command that grants what is missing enables as much.
func TestEnabledKinds(t *testing.T) {
	without := func(f *checks.Facts, definition string) {
		f.CRDs.Value = slices.DeleteFunc(f.CRDs.Value, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == definition })
	}
	crd := func(verdict, name, folder string) string {
		return verdict + " crd/" + name + ".apps.kruise.io: the CRD does not exist\n" +
			"  kubectl apply --server-side --force-conflicts -f config/crd/" + folder + "/apps.kruise.io_" + name + ".yaml\n"
	}
	checkProblems(t, map[string]problem{
		"a permission of all kinds is missing": {
			func(t *testing.T, f *checks.Facts) {
				runWorkloads(t, f, "controllers: {daemonSet: {enabled: true}}")
				f.CRDs.Value = append(f.CRDs.Value, definition(t, "daemonsets.apps.kruise.io"))
				allow(t, f, func(p checks.Permission) bool {
					return p.Attributes.Resource != "persistentvolumeclaims" || p.Attributes.Verb != "list"
				})
			},
			"failed permissions/seamark-workloads: the account lacks 1 of 43 permissions: list persistentvolumeclaims\n" +
				"  install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/daemonsets\n",
		},
		"the configuration cannot be read": {
			func(t *testing.T, f *checks.Facts) {
				runWorkloads(t, f, "")
				without(f, "statefulsets.apps.kruise.io")
				f.Configuration.Value, f.Configuration.Err = nil, errors.New("forbidden")
				allow(t, f, func(checks.Permission) bool { return true })
			},
			crd("warning", "statefulsets", "workloads") + "unknown workloads-configuration: forbidden\n",
		},
		"the configuration cannot be decoded": {
			func(t *testing.T, f *checks.Facts) {
				runWorkloads(t, f, "controllers: [1]")
				without(f, "clonesets.apps.kruise.io")
				allow(t, f, func(checks.Permission) bool { return true })
			},
			crd("warning", "clonesets", "workloads"),
		},
		"only the injectors run": {
			func(t *testing.T, f *checks.Facts) {
				runWorkloads(t, f, "")
				f.Deployments.Value = append(f.Deployments.Value, deployment("seamark-injector"))
				allow(t, f, func(checks.Permission) bool { return true })
			},
			crd("failed", "sidecarsets", "sidecarsets") +
				"warning policy/seamark-sidecarset-author: the policy does not exist: who can write SidecarSets can run containers in all pods\n" +
				"  set sidecarSets.authorEnforcement=Deny in the chart, or kubectl apply --server-side -k config/sidecarsets\n",
		},
	})
}

func TestGrants(t *testing.T) {
	left := []rbacv1.RoleBinding{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "chat", Name: "seamark-workloads-pods"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "seamark-workloads-pods"}},
	}
	checkProblems(t, map[string]problem{
		"none": {func(*testing.T, *checks.Facts) {}, ""},
		"the manager removes them": {func(_ *testing.T, f *checks.Facts) {
			f.Grants.Value, f.Granter.Value = left, &rbacv1.ClusterRoleBinding{}
		}, ""},
		"left": {
			func(_ *testing.T, f *checks.Facts) { f.Grants.Value = left },
			"warning grants: 2 RoleBindings for seamark-workloads, which the manager created before, and may no longer remove: in chat, games\n" +
				"  remove them in two steps: docs/security.md#rolebindings-that-the-manager-created\n",
		},
		"not read": {func(_ *testing.T, f *checks.Facts) { f.Grants.Err = errors.New("no connection") }, "unknown grants: no connection\n"},
	})
}

// TestBindingsOfPods checks that the policy of pods counts as enforced only if both of its bindings enforce it: each applies
// to a part of the writes.
func TestBindingsOfPods(t *testing.T) {
	type binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	const (
		main, unlabelled = "seamark-workloads-pods", "seamark-workloads-pod-deletion-and-status"
		without          = ": seamark-workloads could write all pods of the namespaces that have sets"
	)
	remove := func(name string) func([]binding) []binding {
		return func(all []binding) []binding {
			return slices.DeleteFunc(all, func(b binding) bool { return b.Name == name })
		}
	}
	change := func(name string, edit func(b *binding)) func([]binding) []binding {
		return func(all []binding) []binding {
			edit(&all[slices.IndexFunc(all, func(b binding) bool { return b.Name == name })])
			return all
		}
	}
	audit := func(b *binding) { b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{"Audit"} }
	for name, test := range map[string]struct {
		edit func([]binding) []binding
		want string
	}{
		"both":                 {func(all []binding) []binding { return all }, "enforced (Audit and Deny)"},
		"main missing":         {remove(main), "the policy has no binding " + main + without},
		"unlabelled missing":   {remove(unlabelled), "the policy has no binding " + unlabelled + without},
		"main audits":          {change(main, audit), "violations are not rejected (Audit)" + without},
		"unlabelled audits":    {change(unlabelled, audit), "violations are not rejected (Audit)" + without},
		"unlabelled of others": {change(unlabelled, func(b *binding) { b.Spec.PolicyName = "other" }), "the policy has no binding " + unlabelled + without},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			runWorkloads(t, f, "")
			f.Bindings.Value = test.edit(f.Bindings.Value)
			results := checks.Run(f)
			i := slices.IndexFunc(results, func(r checks.Result) bool { return r.Check == "policy/"+main })
			if i < 0 || results[i].Evidence != test.want {
				t.Errorf("results %+v, want %q", results, test.want)
			}
		})
	}
}
