// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/check/checks"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// lines returns the results as text: all of them, or those that are not ok.
func lines(results []checks.Result, all bool) string {
	var text strings.Builder
	for _, r := range results {
		if !all && r.Verdict == checks.OK {
			continue
		}
		fmt.Fprintf(&text, "%s %s: %s\n", r.Verdict, r.Check, r.Evidence)
		if r.Fix != "" {
			fmt.Fprintf(&text, "  %s\n", r.Fix)
		}
	}
	return text.String()
}

func TestHealthyInstallation(t *testing.T) {
	results := checks.Run(healthy(t))
	want, err := os.ReadFile("testdata/healthy.txt")
	expect.NoError(t, err)
	expect.Equal(t, "results", string(want), lines(results, true))
	if worst, denied := checks.Worst(results); worst != checks.OK || denied {
		t.Errorf("Worst() = %s, %t, want ok, false", worst, denied)
	}
}

// problem is a change of a healthy installation, and the lines of the results that are not ok.
type problem struct {
	change func(t *testing.T, f *checks.Facts)
	want   string
}

func checkProblems(t *testing.T, problems map[string]problem) {
	t.Helper()
	for name, test := range problems {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			test.change(t, f)
			expect.Equal(t, "results that are not ok", test.want, lines(checks.Run(f), false))
		})
	}
}

func TestProblems(t *testing.T) {
	const fix = "  helm upgrade, or kubectl apply --server-side -k config/workloads\n"
	const guards = "  set policies.guards.enabled=true in the chart, or kubectl apply --server-side -k config/policies\n"
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
	checkProblems(t, map[string]problem{
		"old API server": {
			func(_ *testing.T, f *checks.Facts) { f.Server.Value = "v1.31.9" },
			"failed api-server: Kubernetes v1.31.9 is not supported\n  upgrade the cluster to Kubernetes 1.32 or later\n",
		},
		"strange version": {
			func(_ *testing.T, f *checks.Facts) { f.Server.Value = "latest" },
			"unknown api-server: version \"latest\": could not parse \"latest\" as version\n",
		},
		"no CRD": {
			func(_ *testing.T, f *checks.Facts) { f.CRDs.Value = f.CRDs.Value[:3] },
			"failed crd/probereports.seamark.dev: the CRD does not exist\n" +
				"  kubectl apply --server-side --force-conflicts -f config/crd/bases/seamark.dev_probereports.yaml\n",
		},
		"CRD is not established": {
			func(_ *testing.T, f *checks.Facts) { f.CRDs.Value[0].Status.Conditions[1].Status = "False" },
			"failed crd/podprobemarkers.apps.kruise.io: the CRD is not established\n  kubectl describe crd podprobemarkers.apps.kruise.io\n",
		},
		"CRD of OpenKruise": {
			func(_ *testing.T, f *checks.Facts) {
				status := f.CRDs.Value[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
				delete(status.Properties, "conditions")
			},
			"warning crd/podprobemarkers.apps.kruise.io: the schema is that of another version of Seamark or of OpenKruise: " +
				"it differs in spec.versions[v1alpha1].status.conditions\n" +
				"  kubectl apply --server-side --force-conflicts -f config/crd/bases/apps.kruise.io_podprobemarkers.yaml\n",
		},
		"marker with a field that is not stored": {
			func(_ *testing.T, f *checks.Facts) {
				marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "lost", Annotations: map[string]string{
					corev1.LastAppliedConfigAnnotation: `{"spec":{"probes":[{"staleAfterSeconds":60,"startupPolicy":"WaitForStarted"}]}}`,
				}}}
				marker.Spec.Probes = []v1alpha1.PodContainerProbe{{StartupPolicy: v1alpha1.StartupWait}}
				f.Markers.Value = append(f.Markers.Value, *marker)
			},
			"warning marker/games/lost: it was applied with spec.probes[0].staleAfterSeconds, which the API server does not store: the CRD does not have it\n" +
				"  kubectl apply --server-side --force-conflicts -f config/crd/bases/apps.kruise.io_podprobemarkers.yaml, and apply the marker again\n",
		},
		"other descriptions": {
			func(_ *testing.T, f *checks.Facts) {
				f.CRDs.Value[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "other"
			},
			"",
		},
		"not installed": {
			func(t *testing.T, f *checks.Facts) {
				f.Deployments.Value, f.DaemonSets.Value, f.Pods.Value, f.Leases.Value, f.Plans.Value, f.Reports.Value = nil, nil, nil, nil, nil, nil
			},
			"failed manager: namespace seamark-system has no Deployment seamark-manager\n" +
				"  install Seamark (docs/install.md), or name its namespace with --seamark-namespace\n" +
				"failed agents: namespace seamark-system has no DaemonSet seamark-agent\n" +
				"  install Seamark (docs/install.md), or name its namespace with --seamark-namespace\n" +
				"failed versions: namespace seamark-system has no pods of Seamark\n" +
				"  kubectl -n seamark-system get deployments,daemonsets,events\n",
		},
		"no manager is ready": {
			func(_ *testing.T, f *checks.Facts) { f.Deployments.Value[0].Status.ReadyReplicas = 0 },
			"failed manager: 0 of 2 pods ready\n  kubectl -n seamark-system describe pods -l app.kubernetes.io/component=manager\n",
		},
		"one manager is ready": {
			func(_ *testing.T, f *checks.Facts) { f.Deployments.Value[0].Status.ReadyReplicas = 1 },
			"warning manager: 1 of 2 pods ready\n  kubectl -n seamark-system describe pods -l app.kubernetes.io/component=manager\n",
		},
		"lease is not renewed": {
			func(_ *testing.T, f *checks.Facts) {
				f.Leases.Value = []coordinationv1.Lease{lease("seamark-manager", "m1", 5*time.Minute)}
			},
			"failed manager-leader: m1 last renewed the lease seamark-manager 5m0s ago\n" +
				"  kubectl -n seamark-system logs -l app.kubernetes.io/component=manager --tail=50\n",
		},
		"workloads without permissions, lease, CRDs and policy": {
			func(t *testing.T, f *checks.Facts) {
				f.Deployments.Value = append(f.Deployments.Value, deployment("seamark-workloads"))
				f.CRDs.Value = append(f.CRDs.Value, definition(t, "clonesets.apps.kruise.io"))
				f.Policies.Value = f.Policies.Value[:len(f.Policies.Value)-3]
				allow(t, f, func(p checks.Permission) bool {
					return p.Account != "seamark-workloads" || p.Attributes.Resource != "nodes"
				})
			},
			"failed crd/statefulsets.apps.kruise.io: the CRD does not exist\n" +
				"  kubectl apply --server-side --force-conflicts -f config/crd/workloads/apps.kruise.io_statefulsets.yaml\n" +
				"failed workloads-leader: the lease seamark-workloads does not exist: no pod has become the leader\n" +
				"  kubectl -n seamark-system logs -l app.kubernetes.io/component=workloads --tail=50\n" +
				"failed permissions/seamark-workloads: the account lacks 3 of 38 permissions: get nodes, list nodes, watch nodes\n" +
				"  install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/workloads\n" +
				"failed policy/seamark-workloads-pods: the policy does not exist: " +
				"seamark-workloads could write all pods of the namespaces that have sets\n" + fix +
				"failed policy/seamark-workloads-objects: the policy does not exist: " +
				"seamark-workloads could write all claims and revisions there\n" + fix +
				"failed policy/seamark-workloads-grants: the policy does not exist: " +
				"seamark-workloads could write where its policy does not apply\n" + fix,
		},
		"the configuration of the workloads is forbidden": {
			func(t *testing.T, f *checks.Facts) {
				runWorkloads(t, f, "")
				f.Configuration.Value, f.Configuration.Err = nil, forbidden
			},
			"unknown workloads-configuration: nodes is forbidden: no\n  run the command with the permissions of a cluster administrator\n",
		},
		"two versions": {
			func(_ *testing.T, f *checks.Facts) {
				f.Pods.Value[2].Spec.Containers[0].Image = "docker.io/seamark/seamark-agent:v0.8.0"
			},
			"warning versions: pods run different versions: v0.8.0 (agent), v0.9.0 (agent, manager)\n" +
				"  kubectl -n seamark-system rollout status daemonset seamark-agent\n",
		},
		"digests": {
			func(_ *testing.T, f *checks.Facts) {
				f.Pods.Value[0].Spec.Containers[0].Image = "x/y@sha256:0123456789abcdef"
				f.Pods.Value[1].Spec.Containers[0].Image = "x/z@sha256:1123456789abcdef"
				f.Pods.Value[2].Spec.Containers[0].Image = "x/z@sha256:1123456789abcdef"
			},
			"",
		},
		"agent is not ready": {
			func(_ *testing.T, f *checks.Facts) {
				f.DaemonSets.Value[0].Status.NumberReady = 1
				f.Pods.Value[2].Status.Conditions = nil
			},
			"failed agents: 1 of 2 agents ready\n  kubectl -n seamark-system describe pods -l app.kubernetes.io/component=agent\n" +
				"failed nodes: 1 of 2 nodes have no ready agent: n2\n" +
				"  kubectl -n seamark-system get pods -l app.kubernetes.io/component=agent --field-selector spec.nodeName=n2\n" +
				"failed plans: 1 node with probes and without a ready agent: n2\n" +
				"  kubectl -n seamark-system get pods -l app.kubernetes.io/component=agent --field-selector spec.nodeName=n2\n",
		},
		"node selector excludes a node": {
			func(_ *testing.T, f *checks.Facts) {
				f.Nodes.Value = append(f.Nodes.Value, node("w", map[string]string{"kubernetes.io/os": "windows"}))
			},
			"warning nodes: the node selector, affinity or tolerations of the DaemonSet exclude 1 node: w\n" +
				"  nothing if this is intended, for example for Windows; " +
				"otherwise change agent.nodeSelector, agent.affinity or agent.tolerations of the chart\n",
		},
		"manager cannot write marks": {
			func(t *testing.T, f *checks.Facts) {
				allow(t, f, func(p checks.Permission) bool {
					return p.String() != "patch pods/status" || p.Account != "seamark-manager"
				})
			},
			"failed permissions/seamark-manager: the account lacks 1 of 38 permissions: patch pods/status\n" +
				"  install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/default\n",
		},
		"policies": {
			func(_ *testing.T, f *checks.Facts) {
				f.Policies.Value = f.Policies.Value[1:3]
				f.Bindings.Value[1].Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
				f.Policies.Value[1].Status.TypeChecking = &admissionregistrationv1.TypeChecking{
					ExpressionWarnings: []admissionregistrationv1.ExpressionWarning{{
						FieldRef: "spec.variables[0].expression", Warning: "undefined field\nmore",
					}},
				}
			},
			"failed policy/seamark-agent-own-node: the policy does not exist: an agent could write for other nodes\n" +
				"  helm upgrade, or kubectl apply --server-side -k config/policies\n" +
				"failed policy/seamark-agent-own-reports: violations are not rejected (Audit): an agent could write for other nodes\n" +
				"  helm upgrade, or kubectl apply --server-side -k config/policies\n" +
				"warning policy/seamark-agent-events: the API server cannot check the type of spec.variables[0].expression: undefined field\n" +
				"  upgrade the CRDs and the policies together: helm upgrade\n" +
				"failed policy/seamark-manager-plans: the policy does not exist: the manager could run commands in the pods of kube-system\n" +
				"  helm upgrade, or kubectl apply --server-side -k config/policies\n" +
				"failed policy/seamark-manager-pods: the policy does not exist: " +
				"the manager could write the status and the labels of the pods of kube-system\n" +
				"  helm upgrade, or kubectl apply --server-side -k config/policies\n" +
				"failed policy/seamark-webhook-configurations: the policy does not exist: " +
				"the manager and seamark-workloads could have objects of any kind sent elsewhere\n" +
				"  helm upgrade, or kubectl apply --server-side -k config/policies\n" +
				"warning policy/seamark-marker-author: the policy does not exist: " +
				"who can write a marker can run commands in the pods of the namespace, label them and read their HTTP responses\n" +
				"  set policies.markerAuthor.enforcement=Deny in the chart, or kubectl apply --server-side -k config/policies\n" +
				"warning policy/seamark-guards: the policy does not exist: guards protect pods from evictions only\n" + guards +
				"warning policy/seamark-guard-updates: the policy does not exist: guards do not protect pods from new images\n" + guards +
				"warning policy/seamark-guard-labels: the policy does not exist: a guard with a wrong label is accepted, and is none\n" + guards,
		},
		"webhook without certificates": {
			func(_ *testing.T, f *checks.Facts) {
				f.Webhook.Value = &admissionregistrationv1.MutatingWebhookConfiguration{
					Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "pods.seamark.dev"}},
				}
			},
			"failed webhook: webhook pods.seamark.dev has no CA bundle, so its calls fail and pods on virtual nodes are annotated late\n" +
				"  kubectl -n seamark-system logs -l app.kubernetes.io/component=manager --tail=50\n",
		},
		"outdated plan": {
			func(_ *testing.T, f *checks.Facts) { f.Plans.Value[0].Generation = 2 },
			"failed plans: the agents of 1 node run an outdated plan: n1\n" +
				"  kubectl -n seamark-system logs -l app.kubernetes.io/component=agent --tail=50 --prefix | grep n1\n",
		},
		"plan that just changed": {
			func(_ *testing.T, f *checks.Facts) {
				f.Plans.Value[0].Generation = 2
				f.Plans.Value[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "seamark", Time: new(metav1.NewTime(now.Add(-time.Second)))}}
			},
			"",
		},
		"objects of a node that does not exist": {
			func(_ *testing.T, f *checks.Facts) {
				f.Plans.Value = append(f.Plans.Value, plan("gone", "3"))
				f.Reports.Value = append(f.Reports.Value, report("gone", "3"))
			},
			"warning plans: 1 plan of nodes that do not exist: gone\n  kubectl delete nodepodprobe gone\n" +
				"warning reports: 1 report of nodes that do not exist: gone.0\n  kubectl delete probereport gone.0\n",
		},
		"probe without a result": {
			func(_ *testing.T, f *checks.Facts) { f.Reports.Value[1].Pods[0].Probes = nil },
			"warning reports: probes have problems: NoResult (1 probe): game/p-2 m#idle\n  kubectl -n game describe pod p-2\n",
		},
		"probe that cannot run": {
			func(_ *testing.T, f *checks.Facts) {
				f.Reports.Value[1].Pods[0].Errors = []v1alpha1.ContainerProbeError{{Name: "m#idle", Reason: v1alpha1.ProbeCannotRun}}
			},
			"warning reports: probes have problems: CannotRun (1 probe): game/p-2 m#idle\n  kubectl -n game describe pod p-2\n",
		},
		"error in the report of another node": {
			func(_ *testing.T, f *checks.Facts) {
				f.Reports.Value[0].Pods = append(f.Reports.Value[0].Pods, seamarkv1alpha1.PodReport{
					Namespace: "game", Name: "p-2", UID: "2", Errors: []v1alpha1.ContainerProbeError{{Name: "m#idle", Reason: v1alpha1.ProbeCannotRun}},
				})
			},
			"",
		},
		"error of a pod that is not planned any more": {
			func(_ *testing.T, f *checks.Facts) {
				f.Plans.Value[1].Spec.PodProbes = nil
				f.Reports.Value[1].Pods[0].Errors = []v1alpha1.ContainerProbeError{{Name: "m#idle", Reason: v1alpha1.ProbeNotEnded}}
			},
			"",
		},
		"agent of OpenKruise": {
			func(_ *testing.T, f *checks.Facts) {
				f.Plans.Value[0].Status = v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
					UID: "1", ProbeStates: []v1alpha1.ContainerProbeState{{Name: "m#idle"}},
				}}}
				f.Reports.Value = f.Reports.Value[1:]
			},
			"",
		},
		"markers": {
			func(_ *testing.T, f *checks.Facts) {
				f.Markers.Value[0].Status.Conditions[0] = metav1.Condition{
					Type: "ProbesResolved", Status: metav1.ConditionFalse, Reason: "ContainerNotFound", Message: "No container\nwroker.",
				}
				late, unused := *f.Markers.Value[0].DeepCopy(), *f.Markers.Value[0].DeepCopy()
				late.Name, late.Generation = "late", 2
				unused.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodsMatched, Status: metav1.ConditionFalse}}
				f.Markers.Value = append(slices.Repeat([]v1alpha1.PodProbeMarker{unused}, 11), f.Markers.Value[0], late)
			},
			"warning marker/game/m: ProbesResolved is False: ContainerNotFound: No container wroker.\n" +
				"  kubectl -n game describe podprobemarker m\n" +
				"failed markers: the manager has not processed 1 marker: game/late\n" +
				"  kubectl -n seamark-system logs -l app.kubernetes.io/component=manager --tail=50\n",
		},
		"OpenKruise runs the same controllers": {
			func(_ *testing.T, f *checks.Facts) {
				f.Kruise.Lease.Value, f.Kruise.Mutating.Value = new(lease("kruise-manager", "k1", time.Second)), builders.OpenKruiseWebhook("kruise-system")
				runWorkloads(t, f, "")
			},
			"failed openkruise: OpenKruise's manager k1 is running with the gate PodProbeMarkerGate: both write the same plans and marks\n" +
				"  helm upgrade kruise openkruise/kruise --reuse-values --set featureGates='PodProbeMarkerGate=false' (docs/migrate-from-openkruise.md)\n" +
				"failed openkruise-workloads: seamark-workloads does nothing while OpenKruise's manager k1 is running\n" +
				"  kubectl -n kruise-system scale deployment kruise-controller-manager --replicas 0 (docs/migrate-from-openkruise.md#migrate-workloads)\n",
		},
		"OpenKruise's webhook rejects markers": {
			func(_ *testing.T, f *checks.Facts) {
				f.Kruise.Lease.Value, f.Kruise.Mutating.Value = new(lease("kruise-manager", "k1", time.Second)), builders.OpenKruiseWebhook("kruise-system")
				f.Kruise.Manager.Value = kruiseManager("--feature-gates=A=true,PodProbeMarkerGate=false")
				f.Kruise.Webhook.Value = &admissionregistrationv1.ValidatingWebhookConfiguration{
					Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "vpodprobemarker.kb.io"}},
				}
			},
			"failed openkruise: the webhook vpodprobemarker.kb.io of OpenKruise rejects every write of a marker, because PodProbeMarkerGate is off\n" +
				"  remove the webhook: step 3 of docs/migrate-from-openkruise.md\n",
		},
		"OpenKruise next to Seamark": {
			func(_ *testing.T, f *checks.Facts) {
				f.Kruise.Lease.Value, f.Kruise.Mutating.Value = new(lease("kruise-manager", "k1", time.Second)), builders.OpenKruiseWebhook("kruise-system")
				f.Kruise.Manager.Value = kruiseManager("--feature-gates=PodProbeMarkerGate=false")
			},
			"",
		},
		"OpenKruise was removed": {
			func(_ *testing.T, f *checks.Facts) {
				f.Kruise.Lease.Value = new(lease("kruise-manager", "k1", time.Hour))
			},
			"",
		},
		"nodes are forbidden": {
			func(_ *testing.T, f *checks.Facts) { f.Nodes.Value, f.Nodes.Err = nil, forbidden },
			"unknown nodes: nodes is forbidden: no\n  run the command with the permissions of a cluster administrator\n",
		},
	})
}

func kruiseManager(args ...string) *appsv1.Deployment {
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "manager", Args: args}},
	}}}}
}
