// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"errors"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/config"
	"github.com/seamark-dev/seamark/internal/cli/check/checks"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

var now = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "seamark-system", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)), Generation: 1}
}

func definition(t *testing.T, name string) apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var d apiextensionsv1.CustomResourceDefinition
	expect.NoError(t, yaml.Unmarshal(config.Definition(name), &d))
	d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	return d
}

func deployment(name string) appsv1.Deployment {
	return appsv1.Deployment{
		ObjectMeta: named(name),
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: 2, UpdatedReplicas: 2, ObservedGeneration: 1},
	}
}

func lease(name, holder string, age time.Duration) coordinationv1.Lease {
	return coordinationv1.Lease{ObjectMeta: named(name), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, RenewTime: new(metav1.NewMicroTime(now.Add(-age))), LeaseDurationSeconds: new(int32(15)),
	}}
}

func pod(component, name, node, image string) corev1.Pod {
	meta := named(name)
	meta.Labels = map[string]string{"app.kubernetes.io/component": component}
	return corev1.Pod{
		ObjectMeta: meta,
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: component, Image: image}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func node(name string, labels map[string]string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func policy(name string, actions ...admissionregistrationv1.ValidationAction) (admissionregistrationv1.ValidatingAdmissionPolicy, admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	return admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}},
		admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: actions},
		}
}

func plan(node, uid string) v1alpha1.NodePodProbe {
	return v1alpha1.NodePodProbe{
		ObjectMeta: named(node),
		Spec: v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
			Namespace: "game", Name: "p-" + uid, UID: uid, Probes: []v1alpha1.ContainerProbe{{Name: "m#idle"}},
		}}},
		Status: v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, ProbeReports: true},
	}
}

func report(node, uid string) seamarkv1alpha1.ProbeReport {
	return seamarkv1alpha1.ProbeReport{
		ObjectMeta: named(node + ".0"), NodeName: node,
		Pods: []seamarkv1alpha1.PodReport{{Namespace: "game", Name: "p-" + uid, UID: uid, Probes: []v1alpha1.ContainerProbeState{{Name: "m#idle"}}}},
	}
}

// healthy returns the facts of an installation without problems: two nodes with an agent, and a
// virtual node.
func healthy(t *testing.T) *checks.Facts {
	f := &checks.Facts{Now: now, Namespace: "seamark-system"}
	f.Server.Value = "v1.36.3+k3s1"
	for _, name := range []string{"podprobemarkers.apps.kruise.io", "nodepodprobes.apps.kruise.io", "probeplans.seamark.dev", "probereports.seamark.dev"} {
		f.CRDs.Value = append(f.CRDs.Value, definition(t, name))
	}
	f.Deployments.Value = []appsv1.Deployment{deployment("seamark-manager")}
	f.DaemonSets.Value = []appsv1.DaemonSet{{
		ObjectMeta: named("seamark-agent"),
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"kubernetes.io/os": "linux"}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		}}},
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 2, UpdatedNumberScheduled: 2, ObservedGeneration: 1},
	}}
	f.Pods.Value = []corev1.Pod{
		pod("manager", "m1", "n1", "registry.example.com:5000/seamark-manager:v0.9.0"),
		pod("agent", "a1", "n1", "docker.io/seamark/seamark-agent:v0.9.0"),
		pod("agent", "a2", "n2", "docker.io/seamark/seamark-agent:v0.9.0"),
		pod("selftest", "s", "n1", "docker.io/seamark/seamark-manager:v0.8.0"),
	}
	f.Leases.Value = []coordinationv1.Lease{lease("seamark-manager", "m1", 2*time.Second)}
	linux := map[string]string{"kubernetes.io/os": "linux"}
	f.Nodes.Value = []corev1.Node{node("n1", linux), node("n2", linux), node("v", map[string]string{"type": "virtual-kubelet"})}
	for _, name := range []string{"seamark-agent-own-node", "seamark-agent-own-reports", "seamark-agent-events", "seamark-manager-plans", "seamark-manager-pods",
		"seamark-webhook-configurations",
		"seamark-guards", "seamark-guard-updates", "seamark-guard-labels",
		"seamark-marker-author", "seamark-workloads-pods", "seamark-workloads-objects", "seamark-workloads-grants"} {
		p, b := policy(name, admissionregistrationv1.Deny, admissionregistrationv1.Audit)
		f.Policies.Value, f.Bindings.Value = append(f.Policies.Value, p), append(f.Bindings.Value, b)
	}
	_, unlabelled := policy("seamark-workloads-pods", admissionregistrationv1.Deny, admissionregistrationv1.Audit)
	unlabelled.Name = "seamark-workloads-pod-deletion-and-status"
	f.Bindings.Value = append(f.Bindings.Value, unlabelled)
	f.Plans.Value = []v1alpha1.NodePodProbe{plan("n1", "1"), plan("n2", "2")}
	f.Reports.Value = []seamarkv1alpha1.ProbeReport{report("n1", "1"), report("n2", "2")}
	f.Markers.Value = []v1alpha1.PodProbeMarker{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "game", Name: "m", Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Status: v1alpha1.PodProbeMarkerStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
			{Type: "ProbesResolved", Status: metav1.ConditionTrue},
		}},
	}}
	allow(t, f, func(checks.Permission) bool { return true })
	return f
}

// runWorkloads adds seamark-workloads with the configuration, and the CRDs that it needs by default.
func runWorkloads(t *testing.T, f *checks.Facts, configuration string) {
	t.Helper()
	f.Deployments.Value = append(f.Deployments.Value, deployment("seamark-workloads"))
	f.Leases.Value = append(f.Leases.Value, lease("seamark-workloads", "w1", time.Second))
	f.CRDs.Value = append(f.CRDs.Value, definition(t, "clonesets.apps.kruise.io"), definition(t, "statefulsets.apps.kruise.io"))
	f.Configuration.Value = &corev1.ConfigMap{Data: map[string]string{"workloads.yaml": configuration}}
}

// allow answers the questions about permissions.
func allow(t *testing.T, f *checks.Facts, allowed func(checks.Permission) bool) {
	t.Helper()
	required, err := f.Required()
	expect.NoError(t, err)
	f.Access.Value = nil
	for _, p := range required {
		f.Access.Value = append(f.Access.Value, checks.Access{Permission: p, Allowed: allowed(p)})
	}
}

// TestNothingReadable checks that facts that cannot be read never lead to a verdict.
func TestNothingReadable(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	f := &checks.Facts{Now: now, Namespace: "seamark-system"}
	f.Server.Err, f.CRDs.Err, f.Deployments.Err, f.DaemonSets.Err, f.Pods.Err = denied, denied, denied, denied, denied
	f.Leases.Err, f.Nodes.Err, f.Policies.Err, f.Bindings.Err, f.Webhook.Err = denied, denied, denied, denied, denied
	f.Access.Err, f.Plans.Err, f.Reports.Err, f.Markers.Err = denied, denied, denied, denied
	f.Kruise.Lease.Err = denied
	results := checks.Run(f)
	for _, r := range results {
		if r.Verdict != checks.Unknown || !r.Denied {
			t.Errorf("%s is %s: %s, want unknown and denied", r.Check, r.Verdict, r.Evidence)
		}
	}
	if worst, denied := checks.Worst(results); worst != checks.Unknown || !denied {
		t.Errorf("Worst() = %s, %t, want unknown, true", worst, denied)
	}
}

// Whoever can create the namespace can hold the lease.
func TestLeaseOfATenant(t *testing.T) {
	f := healthy(t)
	f.Kruise.Lease.Value, f.Kruise.Mutating.Value = new(lease("kruise-manager", "tenant", time.Second)), builders.OpenKruiseWebhook("other")
	want := "warning openkruise: tenant holds the lease of OpenKruise's manager, but no webhook of kruise-mutating-webhook-configuration has a Service of " +
		"kruise-system: Seamark does not regard it as OpenKruise\n  find out who renews the lease: kubectl -n kruise-system get lease kruise-manager -o yaml\n"
	expect.Equal(t, "results that are not ok", want, lines(checks.Run(f), false))
}
