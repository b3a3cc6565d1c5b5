// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/injector"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestGroupsAreExact compares which pods the API server sends by an entry of several sets with what their
// selectors select.
func TestGroupsAreExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := server.Namespace(t)
	random := rand.New(rand.NewPCG(7, 25))
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	var sets []*v1alpha1.SidecarSet
	for i := range 256 + 12 {
		set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%03d", i), UID: types.UID(fmt.Sprint(i))}}
		set.Status.InForce = &v1alpha1.SidecarSetInForce{Selector: &metav1.LabelSelector{}, Namespace: pick(w.Namespace, other)}
		if selector := set.Status.InForce.Selector; random.IntN(2) == 0 {
			selector.MatchLabels = map[string]string{pick("a", "b.example.com/c"): pick("", "1", "2")}
		} else {
			operator := []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}[random.IntN(4)]
			for range 2 {
				each := metav1.LabelSelectorRequirement{Key: pick("a", "b.example.com/c", "d"), Operator: operator}
				if operator == "In" || operator == "NotIn" {
					each.Values = []string{pick("", "1"), pick("2", "3")}
				}
				selector.MatchExpressions = append(selector.MatchExpressions, each)
			}
			selector.MatchLabels = map[string]string{"e": pick("1", "2", "3")}
		}
		sets = append(sets, set)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	plan := entries.Server{
		Client: admissionregistrationv1.WebhookClientConfig{URL: &w.server.URL, CABundle: bundle}, Namespace: env.SystemNamespace,
	}.Plan(sets, entries.Lists{})
	config := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	for _, list := range plan.Lists {
		for i := range list {
			if strings.HasPrefix(list[i].Name, "fail-") {
				config.Webhooks = append(config.Webhooks, list[i])
			}
		}
	}
	if len(config.Webhooks) != 1 {
		t.Fatalf("%d groups, want 1", len(config.Webhooks))
	}
	var asked atomic.Int64
	w.server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		injector.New(w, func(injector.Result) {}).ServeHTTP(rw, r)
	})
	w.CreateFor(config)
	create := func(namespace string, of map[string]string) bool {
		before := asked.Load()
		p := pod(namespace, "game")
		p.Labels = of
		// No set is known: a pod that the entry selects is refused.
		err := server.Client.Create(t.Context(), p, client.DryRunAll)
		if sent := asked.Load() > before; sent != (err != nil) {
			t.Fatalf("sent %t, error %v", sent, err)
		}
		return err != nil
	}
	selected := func(namespace string, of map[string]string) bool {
		return slices.ContainsFunc(sets[256:], func(set *v1alpha1.SidecarSet) bool {
			selector, err := metav1.LabelSelectorAsSelector(set.Status.InForce.Selector)
			return err == nil && set.Status.InForce.Namespace == namespace && selector.Matches(labels.Set(of))
		})
	}
	known := sets[256+slices.IndexFunc(sets[256:], func(s *v1alpha1.SidecarSet) bool {
		return s.Status.InForce.Namespace == w.Namespace && len(s.Status.InForce.Selector.MatchExpressions) == 0
	})].Status.InForce.Selector.MatchLabels
	// The API server learns of the entry by a watch.
	await.Poll{Interval: 10 * time.Millisecond, Timeout: await.Timeout}.Success(t, "the entry is used", func(context.Context) error {
		return await.ErrorIf(!create(w.Namespace, known), "no request")
	})
	yes := 0
	for range 400 {
		namespace, of := pick(w.Namespace, other), map[string]string{}
		for _, key := range []string{"a", "b.example.com/c", "d", "e"} {
			if random.IntN(3) > 0 {
				of[key] = pick("", "1", "2", "3")
			}
		}
		if random.IntN(10) == 0 {
			of = nil
		}
		want := selected(namespace, of)
		expect.Equal(t, fmt.Sprintf("pod of %s with labels %v: sent", namespace, of), want, create(namespace, of))
		if want {
			yes++
		}
	}
	if yes < 40 || yes > 360 {
		t.Errorf("%d of 400 pods are selected: the test says little", yes)
	}
	// The injector fails: the policy decides.
	config.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
	expect.NoError(t, server.Client.Update(t.Context(), config))
	ignored := pod(w.Namespace, "game")
	ignored.Labels = known
	await.Poll{Interval: 10 * time.Millisecond, Timeout: await.Timeout}.Success(t, "pods are created while the injector fails", func(ctx context.Context) error {
		return server.Client.Create(ctx, ignored.DeepCopy(), client.DryRunAll)
	})
}

// TestManySetsWhileTheAuthorityChanges creates pods all the time while certificates and their authority change several
// times, and while somebody with another namespace creates, changes and deletes sets: more sets exist than have entries
// of their own, and no pod is created without its containers.
func TestManySetsWhileTheAuthorityChanges(t *testing.T) {
	t.Parallel()
	// A new authority is issued after 10 seconds, and signs after 13.
	i := install(t, env.Start(t), certificates.Lifetimes{
		Authority: 15 * time.Second, Server: 15 * time.Second, Overlap: 3 * time.Second, Look: 200 * time.Millisecond,
	})
	namespace, hostile := i.Env.Namespace(t), i.Env.Namespace(t)
	// The set 255 gets an own place, and the set 259 shares an entry.
	const gives, shares = 255, 259
	var last *v1alpha1.SidecarSet
	for n := range shares + 1 {
		if n == gives+1 {
			i.allInject(t, n) // Sets are accepted in any order: these have all own places, so that the others share.
		}
		last = sidecarSet(fmt.Sprintf("set-%03d", n), nil)
		last.Spec.Namespace, last.Spec.Selector.MatchLabels["set"] = hostile, fmt.Sprint(n)
		if n == gives || n == shares {
			last.Spec.Namespace = namespace
		}
		i.Create(last)
	}
	i.injects(t, last)
	if i.stored(t, last.Name) != nil {
		t.Error("the last set has an entry of its own")
	}
	p, given := pod(namespace, "game"), pod(namespace, "given")
	p.Labels["set"], given.Labels["set"] = fmt.Sprint(shares), fmt.Sprint(gives)
	i.eventually(t, "the set of a group is injected", p, has("set-259 server"))
	i.eventually(t, "the set with an entry of its own is injected", given, has("set-255 server"))
	wide := sidecarSet("wide", func(s *v1alpha1.SidecarSetSpec) { s.Selector.MatchLabels["set"] = "wide" })
	i.Create(wide)
	authorities := map[string]bool{}
	secret := &corev1.Secret{}
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	turn := 0
	for start := time.Now(); time.Since(start) < 28*time.Second; <-pace.C {
		for want, p := range map[string]*corev1.Pod{"set-259 server": p, "set-255 server": given} {
			created := p.DeepCopy()
			if err := has(want)(created, i.Client.Create(t.Context(), created, client.DryRunAll)); err != nil {
				t.Fatalf("after %s and %d changes of others: %v", time.Since(start), turn, err)
			}
		}
		expect.NoError(t, i.Client.Get(t.Context(), client.ObjectKey{Namespace: env.SystemNamespace, Name: certificates.Name}, secret))
		authorities[string(secret.Data["current.crt"])] = true
		if time.Since(start) > time.Duration(turn)*time.Second/2 {
			i.disturb(t, turn, hostile)
			turn++
		}
	}
	if len(authorities) < 3 {
		t.Errorf("%d authorities signed, want at least 3", len(authorities))
	}
	// The set of all namespaces has the place of another one.
	i.injects(t, wide)
	// Without an injector, only the pods that a set selects wait for it.
	i.end()
	other := pod(namespace, "other")
	if err := i.Client.Create(t.Context(), other); err != nil || names(other) != "server" {
		t.Errorf("a pod that no set selects: containers %s, error %v", names(other), err)
	}
	if err := i.Client.Create(t.Context(), p.DeepCopy()); err == nil {
		t.Error("a pod that a set selects is created without an injector")
	}
}

// allInject waits until the n sets inject. Each costs the API server some 50 ms of processor time, so that the wait has a
// longer timeout.
func (i *installation) allInject(t *testing.T, n int) {
	t.Helper()
	await.Poll{Interval: 200 * time.Millisecond, Timeout: 5 * time.Minute}.Until(t, "all sets inject", func(ctx context.Context) (string, error) {
		var sets v1alpha1.SidecarSetList
		err := i.Client.List(ctx, &sets)
		ready := 0
		for j := range sets.Items {
			if meta.IsStatusConditionTrue(sets.Items[j].Status.Conditions, v1alpha1.SidecarSetInjecting) {
				ready++
			}
		}
		if err == nil && ready < n {
			return fmt.Sprintf("%d of %d", ready, n), nil
		}
		return "", err
	})
}

// disturb changes sets of the namespace: every change moves those of others that share entries, if these are filled
// again, or that have places of their own, if these are given away.
func (i *installation) disturb(t *testing.T, turn int, namespace string) {
	t.Helper()
	set := sidecarSet(fmt.Sprintf("set-%03d", turn), nil)
	switch turn % 4 {
	case 0:
		i.Delete(set)
	case 1:
		i.edit(set, func(s *v1alpha1.SidecarSet) { s.Spec.InjectionStrategy.Paused = true })
	case 2:
		i.edit(set, func(s *v1alpha1.SidecarSet) {
			s.Annotations = map[string]string{v1alpha1.InjectionFailurePolicyKey: "Ignore"}
		})
	default:
		created := sidecarSet(fmt.Sprintf("other-%03d", turn), func(s *v1alpha1.SidecarSetSpec) { s.Namespace = namespace })
		created.Spec.Selector.MatchLabels["set"] = created.Name
		if turn%8 == 7 {
			created.Spec.Namespace = ""
		}
		i.Create(created)
	}
}
