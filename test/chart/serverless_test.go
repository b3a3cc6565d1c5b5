// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

const gate = "featureGates.EnablePodProbeMarkerOnServerless=true"

// hookKinds returns the kinds of the objects that exist only for the webhook.
func hookKinds(objects map[key]map[string]any) map[string]bool {
	kinds := map[string]bool{}
	for k := range objects {
		if k.Name == "seamark-webhook" {
			kinds[k.Kind] = true
		}
	}
	return kinds
}

// TestServerlessMatchesConfig compares the chart with config/serverless, except for how the
// gate is set: the chart uses a configuration file, config/ uses a flag.
func TestServerlessMatchesConfig(t *testing.T) {
	const name = "seamark-manager"
	want := parse(t, output(t, tool(t, "kustomize"), "build", "config/serverless"))
	got := withoutHooks(parse(t, template(t, tool(t, "helm"), "seamark-system", "--set", gate)))
	delete(want, key{Kind: "Namespace", Name: "seamark-system"})
	delete(got, key{Kind: "ConfigMap", Namespace: "seamark-system", Name: name})
	for _, objects := range []map[key]map[string]any{want, got} {
		deployment := objects[key{Kind: "Deployment", Namespace: "seamark-system", Name: name}]
		template, _ := at(deployment, []string{"spec", "template"}).(map[string]any)
		delete(template["metadata"].(map[string]any), "annotations")
		pod := template["spec"].(map[string]any)
		delete(pod, "volumes")
		container := at(pod, []string{"containers", "0"}).(map[string]any)
		if len(container["args"].([]any)) != 1 {
			t.Errorf("arguments %v, want one", container["args"])
		}
		delete(container, "args")
		delete(container, "volumeMounts")
	}
	expect.Equal(t, want, got, "objects")
	if count := len(hookKinds(want)); count != 7 {
		t.Errorf("config/serverless has %d kinds of objects of the webhook, want 7", count)
	}
}

func TestWebhookRequiresGate(t *testing.T) {
	all := map[string]bool{
		"MutatingWebhookConfiguration": true, "Service": true,
		"Secret": true, "Role": true, "RoleBinding": true, "ClusterRole": true, "ClusterRoleBinding": true,
	}
	for name, test := range map[string]struct {
		set  string
		want map[string]bool
	}{
		"default":       {"manager.replicas=2", map[string]bool{}},
		"gate enabled":  {gate, all},
		"gate disabled": {"featureGates.EnablePodProbeMarkerOnServerless=false", map[string]bool{}},
		"cert-manager": {gate + ",serverless.webhook.certificates=certManager", map[string]bool{
			"MutatingWebhookConfiguration": true, "Service": true, "Issuer": true, "Certificate": true,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", test.set))
			expect.Equal(t, test.want, hookKinds(objects), "kinds")
		})
	}
}

func TestServerlessValues(t *testing.T) {
	const hook = "webhooks.0."
	configuration := key{Kind: "MutatingWebhookConfiguration", Name: "seamark-webhook"}
	manager := key{Kind: "Deployment", Namespace: "ns", Name: "seamark-manager"}
	byCertManager := gate + ",serverless.webhook.certificates=certManager"
	for name, test := range map[string]struct {
		set    string
		object key
		path   string
		want   any
	}{
		"never rejects": {gate, configuration, hook + "failurePolicy", "Ignore"},
		"timeout":       {gate + ",serverless.webhook.timeoutSeconds=5", configuration, hook + "timeoutSeconds", int64(5)},
		"namespaces": {gate + ",serverless.webhook.excludedNamespaces={ops,kube-system}", configuration,
			hook + "namespaceSelector.matchExpressions.0.values", []any{"kube-system", "ns", "ops"}},
		"service":        {gate, configuration, hook + "clientConfig.service.namespace", "ns"},
		"port":           {gate, manager, "spec.template.spec.containers.0.ports.2.containerPort", int64(9443)},
		"CA injection":   {byCertManager, configuration, "metadata.annotations", map[string]any{"cert-manager.io/inject-ca-from": "ns/seamark-webhook"}},
		"volume":         {byCertManager, manager, "spec.template.spec.volumes.1.secret.secretName", "seamark-webhook-certificate"},
		"network policy": {gate, key{Kind: "NetworkPolicy", Namespace: "ns", Name: "seamark-manager"}, "spec.ingress.1.ports.0.port", "webhook"},
		// The name differs from the chart's own Secret, so that users can switch back and forth.
		"secret":      {byCertManager, key{Kind: "Certificate", Namespace: "ns", Name: "seamark-webhook"}, "spec.secretName", "seamark-webhook-certificate"},
		"certificate": {byCertManager, key{Kind: "Certificate", Namespace: "ns", Name: "seamark-webhook"}, "spec.dnsNames.0", "seamark-webhook.ns.svc"},
		// The authority does not change with the certificate.
		"issuer":    {byCertManager, key{Kind: "Issuer", Namespace: "ns", Name: "seamark-webhook"}, "spec.ca.secretName", "seamark-webhook-authority"},
		"authority": {byCertManager, key{Kind: "Certificate", Namespace: "ns", Name: "seamark-webhook-authority"}, "spec.privateKey.rotationPolicy", "Never"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", test.set))
			expect.Equal(t, test.want, at(any(objects[test.object]), strings.Split(test.path, ".")), "%s", test.path)
		})
	}
	configMap := parse(t, template(t, tool(t, "helm"), "ns", "--set", byCertManager))[key{Kind: "ConfigMap", Namespace: "ns", Name: "seamark-manager"}]
	file, _ := at(any(configMap), []string{"data", "manager.yaml"}).(string)
	for _, part := range []string{"EnablePodProbeMarkerOnServerless: true", "certificates: certManager"} {
		if !strings.Contains(file, part) {
			t.Errorf("the manager's configuration lacks %q:\n%s", part, file)
		}
	}
}
