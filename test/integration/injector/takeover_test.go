// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// renew holds the lease of OpenKruise's manager until the function is called.
func renew(t *testing.T, e *env.Env) (release func()) {
	t.Helper()
	lease := program.OpenKruiseLeads(t, e, 15*time.Second)
	stop := env.Run(t, func(ctx context.Context) error {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			lease.Spec.RenewTime = new(metav1.NowMicro())
			_ = e.Client.Update(ctx, lease)
		}, time.Second)
		return nil
	})
	return func() {
		stop()
		expect.NoError(t, e.Client.Delete(context.WithoutCancel(t.Context()), lease))
	}
}

// TestTakeOver continues sets that OpenKruise serves: while it does, Seamark injects, and writes nothing that
// OpenKruise writes. No pod is touched. A set that uses what Seamark does not serve is left to OpenKruise, and lets no
// pod start without it afterwards.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	// The schema of OpenKruise accepts more.
	e := env.Start(t, env.UnvalidatedCRDs())
	release := renew(t, e)
	w := env.NewWorld(t, e)
	namespace := w.Namespace
	set := sidecarSet("logs", func(s *v1alpha1.SidecarSetSpec) { s.Namespace = namespace })
	set.Labels = map[string]string{v1alpha1.SidecarSetCustomVersionLabel: "v1"}
	w.Create(set)
	first, err := history.New(set, program.OpenKruise, 1, 0)
	expect.NoError(t, err)
	w.Create(first)
	set.Labels[v1alpha1.SidecarSetCustomVersionLabel], set.Spec.Containers[0].Image = "v2", "logs:2"
	set.Spec.InjectionStrategy.Revision = &v1alpha1.SidecarSetInjectRevision{CustomVersion: new("v1")}
	expect.NoError(t, e.Client.Update(t.Context(), set))
	second, err := history.New(set, program.OpenKruise, 2, 0)
	expect.NoError(t, err)
	w.Create(second)
	latest, err := history.Parse(second)
	expect.NoError(t, err)
	// A pod as OpenKruise has injected it.
	running, _, err := inject.Inject(pod(namespace, "running"), latest, func(_, _ string) *inject.Revision { return nil }, metav1.Now())
	expect.NoError(t, err)
	w.Create(running)
	serve := func(set *v1alpha1.SidecarSet, revision string) {
		set.Status.LatestRevision, set.Status.MatchedPods, set.Status.ObservedGeneration = revision, 7, 1
		w.UpdateStatus(set)
	}
	serve(set, second.Name)
	hot := sidecarSet("hot", func(s *v1alpha1.SidecarSetSpec) {
		s.Namespace, s.Selector.MatchLabels = namespace, map[string]string{"app": "hot"}
		s.Containers[0].UpgradeStrategy.UpgradeType = "HotUpgrade"
	})
	w.Create(hot)
	serve(hot, "hot-1")

	i := install(t, e, certificates.DefaultLifetimes())
	i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, string(accept.RevisionNotFound))
	copyRevisions(t, e)
	i.injects(t, set)
	p := pod(namespace, "game")
	i.eventually(t, "the named revision of OpenKruise's namespace is injected", p, image("logs", "logs:1"))
	if set.Status.MatchedPods != 7 || set.Status.ObservedGeneration != 1 {
		t.Errorf("status %+v: Seamark wrote what OpenKruise writes", set.Status)
	}
	i.await(t, hot, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, string(accept.InvalidContainer))
	p.Labels["app"] = "hot"
	i.eventually(t, "OpenKruise injects the set with HotUpgrade, and Seamark leaves its pods alone", p, has("server"))
	i.dropped(t, set, namespace)
	if i.stored(t, hot.Name) != nil {
		t.Error("the set with HotUpgrade has an entry before the lease has ended")
	}
	release()
	i.eventually(t, "pods of the set with HotUpgrade are refused when OpenKruise has ended", p, func(_ *corev1.Pod, err error) error {
		if err == nil || !strings.Contains(err.Error(), `spec.containers[0].upgradeStrategy.upgradeType: "HotUpgrade" is not supported`) {
			return fmt.Errorf("error %w", err)
		}
		return nil
	})
	i.eventually(t, "the status is written when OpenKruise has ended", pod(namespace, "game"), func(*corev1.Pod, error) error {
		i.Get(set)
		return await.ErrorIf(set.Status.MatchedPods != 1 || set.Status.UpdatedPods != 1 || set.Status.ObservedGeneration != set.Generation, "%+v", set.Status)
	})
	after := &corev1.Pod{}
	expect.NoError(t, i.Client.Get(t.Context(), client.ObjectKeyFromObject(running), after))
	if after.ResourceVersion != running.ResourceVersion {
		t.Errorf("the pod has changed:\n%+v", after)
	}
}

// copyRevisions copies the revisions of OpenKruise as an administrator does.
func copyRevisions(t *testing.T, e *env.Env) {
	t.Helper()
	// seamark-workloads may record the current revision first.
	const both, one = "Copied 2 revisions from namespace kruise-system", "Copied 1 revisions from namespace kruise-system to namespace seamark-system; 1 exist there"
	var out bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, "seamark", "test")
	command.SetArgs([]string{"migrate", "revisions", "--kubeconfig", env.Kubeconfig(t, e.Config)})
	if err := command.ExecuteContext(t.Context()); err != nil ||
		!strings.Contains(out.String(), both) && !strings.Contains(out.String(), one) {
		t.Fatalf("error %v, output %s", err, out.String())
	}
}

// dropped checks that each pod gets the containers, and that no entry changes, while OpenKruise writes the status
// again and again, whose client drops the fields that it does not know.
func (i *installation) dropped(t *testing.T, set *v1alpha1.SidecarSet, namespace string) {
	t.Helper()
	before := i.versions(t)
	for n := range 50 {
		for _, p := range []*corev1.Pod{pod(namespace, "game"), pod(namespace, "game")} {
			expect.NoErrorf(t, image("logs", "logs:1")(p, i.Client.Create(t.Context(), p, client.DryRunAll)), "after %d writes of the status", n)
		}
		i.Get(set)
		set.Status.InForce, set.Status.Conditions = nil, nil
		if err := i.Client.Status().Update(t.Context(), set); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
	i.injects(t, set)
	if after := i.versions(t); !slices.Equal(after, before) {
		t.Errorf("versions of the configurations %v, want %v", after, before)
	}
}

// versions returns the resource versions of the configurations.
func (i *installation) versions(t *testing.T) []string {
	t.Helper()
	var versions []string
	for n := range entries.Configurations {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		expect.NoError(t, i.Client.Get(t.Context(), client.ObjectKey{Name: entries.ConfigurationName(n)}, configuration))
		versions = append(versions, configuration.ResourceVersion)
	}
	return versions
}
