// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
	"github.com/seamark-dev/seamark/test/kubelet"
)

// testUpdate changes the image of a container and of a native sidecar in running pods, one after the other.
func testUpdate(t *testing.T, i *installation) {
	set := newSet(t, i, "updated", func(s *v1alpha1.SidecarSetSpec) {
		s.InitContainers = []v1alpha1.SidecarContainer{{
			Container: corev1.Container{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		}}
	})
	env.RunKubelets(t, kubelet.Options{Config: i.Config, Failed: func(err error) { t.Error(err) }, Namespace: set.Spec.Namespace})
	i.apply(set)
	i.injects(t, set)
	i.Create(builders.Guard(set.Spec.Namespace, "busy", true, "yes"))
	p := pod(set.Spec.Namespace, "game")
	i.eventually(t, "the set is injected", p, has("updated server"))
	const count = 5
	for n := range count {
		created := p.DeepCopy()
		created.Name = fmt.Sprint("game-", n)
		i.Create(created)
	}
	status := func(want v1alpha1.SidecarSetStatus) {
		t.Helper()
		i.eventually(t, fmt.Sprintf("status %+v", want), p, func(*corev1.Pod, error) error {
			i.Get(set)
			got := v1alpha1.SidecarSetStatus{
				MatchedPods: set.Status.MatchedPods, UpdatedPods: set.Status.UpdatedPods, ReadyPods: set.Status.ReadyPods,
				UpdatedReadyPods:  set.Status.UpdatedReadyPods,
				NotUpgradablePods: set.Status.NotUpgradablePods,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, UpdatedPods: count, ReadyPods: count, UpdatedReadyPods: count})
	i.edit(set, func(s *v1alpha1.SidecarSet) {
		s.Spec.Containers[0].Image, s.Spec.InitContainers[0].Image = "updated:2", "proxy:2"
		s.Spec.UpdateStrategy.Partition = new(intstr.FromInt32(2))
	})
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, UpdatedPods: 3, ReadyPods: count, UpdatedReadyPods: 3})
	// A guard protects a pod until its label changes.
	pods := &corev1.PodList{}
	expect.NoError(t, i.Client.List(t.Context(), pods, client.InNamespace(set.Spec.Namespace)))
	busy := &pods.Items[slices.IndexFunc(pods.Items, func(each corev1.Pod) bool { return each.Spec.Containers[0].Image == "updated:1" })]
	i.Patch(busy, `{"metadata":{"labels":{%q:"yes"}}}`, builders.GuardLabel)
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.UpdateStrategy.Partition = nil })
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, UpdatedPods: count - 1, ReadyPods: count, UpdatedReadyPods: count - 1})
	i.await(t, set, planning.PodsGuarded, metav1.ConditionTrue, "Guarded")
	i.Patch(busy, `{"metadata":{"labels":{%q:null}}}`, builders.GuardLabel)
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, UpdatedPods: count, ReadyPods: count, UpdatedReadyPods: count})
	expect.NoError(t, i.Client.List(t.Context(), pods, client.InNamespace(set.Spec.Namespace)))
	for _, each := range pods.Items {
		if each.Spec.Containers[0].Image != "updated:2" || each.Spec.InitContainers[0].Image != "proxy:2" ||
			each.Status.ContainerStatuses[1].RestartCount != 0 ||
			inject.Of(&each, set.Name).Revision != set.Status.LatestRevision {
			t.Errorf("pod %s: %+v, annotations %v", each.Name, each.Spec.Containers, each.Annotations)
		}
	}
	// What cannot change in place is reported, and nothing changes.
	i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Args = []string{"-v"} })
	status(v1alpha1.SidecarSetStatus{MatchedPods: count, ReadyPods: count, NotUpgradablePods: count})
	condition := i.await(t, set, v1alpha1.SidecarSetUpgradable, metav1.ConditionFalse, "MustBeRecreated")
	if want := "game-0: spec.containers[updated].args changes"; !strings.Contains(condition.Message, want) {
		t.Errorf("message %q, want %q", condition.Message, want)
	}
}

// testUninjected counts the pods that a set selects and that run without it.
func testUninjected(t *testing.T, i *installation) {
	set := newSet(t, i, "late", nil)
	for n := range 3 {
		i.Create(pod(set.Spec.Namespace, fmt.Sprint("game-", n)))
	}
	i.apply(set)
	i.injects(t, set)
	counts := func(want int32) {
		t.Helper()
		i.eventually(t, fmt.Sprintf("%d pods run without the set", want), pod(set.Spec.Namespace, "x"), func(*corev1.Pod, error) error {
			i.Get(set)
			got := set.Status.UninjectedPods
			return await.ErrorIf(got != want, "%d", got)
		})
	}
	counts(3)
	i.Delete(pod(set.Spec.Namespace, "game-0"), client.GracePeriodSeconds(0))
	counts(2)
}

// testTogether lets two sets and the CloneSet that owns the pods change their images at the same time.
func testTogether(t *testing.T, i *installation) {
	first := i.apply(newSet(t, i, "first", nil))
	second := sidecarSet("second", nil)
	second.Spec.Namespace = first.Spec.Namespace
	i.apply(second)
	i.injects(t, first)
	i.injects(t, second)
	template := pod(first.Spec.Namespace, "game")
	i.eventually(t, "both sets are injected", template, has("first second server"))
	env.RunKubelets(t, kubelet.Options{Config: i.Config, Failed: func(err error) { t.Error(err) }, Namespace: first.Spec.Namespace})
	owner := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: first.Spec.Namespace, Name: "games"}, Spec: v1alpha1.CloneSetSpec{
		Replicas: new(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
	}}
	owner.Spec.UpdateStrategy.Type = v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
	i.Create(owner)
	pods := func(images ...string) map[types.UID]bool {
		t.Helper()
		found := map[types.UID]bool{}
		i.eventually(t, fmt.Sprintf("all pods run %v", images), template, func(*corev1.Pod, error) error {
			list := &corev1.PodList{}
			expect.NoError(t, i.Client.List(t.Context(), list, client.InNamespace(first.Spec.Namespace)))
			clear(found)
			for _, each := range list.Items {
				found[each.UID] = true
				for n, container := range each.Spec.Containers {
					if container.Image != images[n] || len(each.Status.ContainerStatuses) <= n || each.Status.ContainerStatuses[n].Image != images[n] {
						return fmt.Errorf("pod %s: %+v", each.Name, each.Status.ContainerStatuses)
					}
				}
			}
			return await.ErrorIf(len(found) != 4, "%d pods", len(found))
		})
		return found
	}
	before := pods("first:1", "second:1", "game:1")
	i.edit(first, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "first:2" })
	i.edit(second, func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Image = "second:2" })
	base := owner.DeepCopy()
	owner.Spec.Template.Spec.Containers[0].Image = "game:2"
	expect.NoError(t, i.Client.Patch(t.Context(), owner, client.MergeFrom(base)))
	after := pods("first:2", "second:2", "game:2")
	expect.Equal(t, "pods were replaced", before, after)
	for _, set := range []*v1alpha1.SidecarSet{first, second} {
		i.eventually(t, set.Name+" reports all pods as updated", template, func(*corev1.Pod, error) error {
			i.Get(set)
			return await.ErrorIf(set.Status.UpdatedReadyPods != 4, "%+v", set.Status)
		})
	}
}

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
	const (
		both = "Copied 2 revisions from namespace kruise-system"
		one  = "Copied 1 revisions from namespace kruise-system to namespace seamark-system; 1 exist there"
	)
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
