// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"fmt"
	"net"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// installation is an API server with the objects of config/sidecarsets, and seamark-workloads and an injector
// with the rights of their service accounts.
type installation struct {
	*env.World
	address string
	// end ends the injector.
	end func()
}

// install runs the programs until the test ends.
func install(t *testing.T, e *env.Env, lifetimes certificates.Lifetimes) *installation {
	t.Helper()
	i := &installation{World: env.NewWorld(t, e), address: env.FreeAddress(t)}
	_, port, err := net.SplitHostPort(i.address)
	i.Must(err)
	for path, variable := range map[string][2]string{
		"config/workloads/policy.yaml":  {"sidecarSets", "true"},
		"config/policies/webhooks.yaml": {"injectorURL", "'https://localhost:" + port + "'"},
	} {
		manifests := env.Manifests(t, []string{path})
		env.SetVariable(t, manifests, variable[0], variable[1])
		e.Apply(t, manifests...)
	}
	cfg := e.Component(t, workloads.Name)
	program.Grant(t, e)
	own := program.InstallInjector(t, e)
	e.Apply(t, env.Manifests(t, []string{"config/sidecarsets/rbac.yaml", "config/policies/guards.yaml"})...)
	i.end = program.StartInjector(t, own, i.address, lifetimes)
	program.Start(t, cfg, func(o *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		enabled.SidecarSet.Enabled, o.InjectorURL = new(true), "https://localhost:"+port
	})
	return i
}

// apply creates the set, or replaces its specification, and deletes it at the end of the test.
func (i *installation) apply(set *v1alpha1.SidecarSet) *v1alpha1.SidecarSet {
	i.Helper()
	i.CreateFor(set)
	return set
}

// edit changes the set.
func (i *installation) edit(set *v1alpha1.SidecarSet, change func(*v1alpha1.SidecarSet)) {
	i.Helper()
	i.Edit(set, func() { change(set) })
}

// await waits until the condition of the current generation has the status and the reason.
func (i *installation) await(t *testing.T, set *v1alpha1.SidecarSet, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	return i.Condition(set, &set.Status.Conditions, kind, status, reason)
}

// injects waits until the current generation is accepted and its entry is written, and a little longer: API
// servers learn of it by a watch.
func (i *installation) injects(t *testing.T, set *v1alpha1.SidecarSet) {
	t.Helper()
	i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionTrue, "Accepted")
	i.await(t, set, v1alpha1.SidecarSetInjecting, metav1.ConditionTrue, "Entered")
}

// eventually creates pods until one satisfies the check.
func (i *installation) eventually(t *testing.T, what string, p *corev1.Pod, check func(*corev1.Pod, error) error) {
	t.Helper()
	i.Until(what, func() error {
		created := p.DeepCopy()
		created.Name, created.GenerateName = "", p.Name+"-"
		return check(created, i.Client.Create(t.Context(), created, client.DryRunAll))
	})
}

// has returns a check for the containers of a pod.
func has(want string) func(*corev1.Pod, error) error {
	return func(p *corev1.Pod, err error) error {
		if got := names(p); err != nil || got != want {
			return fmt.Errorf("containers %s, error %w, want %s", got, err, want)
		}
		return nil
	}
}

// stored returns the entry of the set, or nil.
func (i *installation) stored(t *testing.T, name string) *admissionregistrationv1.MutatingWebhook {
	t.Helper()
	for n := range entries.Configurations {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		expect.NoError(t, i.Client.Get(t.Context(), client.ObjectKey{Name: entries.ConfigurationName(n)}, configuration))
		for j := range configuration.Webhooks {
			if configuration.Webhooks[j].Name == name+".sidecarsets.seamark.dev" {
				return &configuration.Webhooks[j]
			}
		}
	}
	return nil
}
