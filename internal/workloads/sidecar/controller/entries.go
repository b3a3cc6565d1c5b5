// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

const (
	// writeShare is the inverse of the share of the time that writes of the entries may take, a tenth: after each write, API
	// servers compile the conditions of all sets in a configuration again.
	writeShare = 10
	// leastWrite is the least time that a write counts as.
	leastWrite = 100 * time.Millisecond
	// writeBurst is the time that writes may take without a pause.
	writeBurst = time.Second
)

// state is what is known about the entry of a set.
type state struct {
	// entered is whether it exists, tooMany whether there is no place for it, and unavailable whether no injector
	// has published its authority.
	entered, tooMany, unavailable bool
	// generation is the accepted generation that it has, and since is when it was written, or zero if it
	// existed when the program started.
	generation int64
	since      time.Time
	// failure is why it could not be written.
	failure string
}

// board has the states of all entries.
type board struct {
	mu     sync.Mutex
	states map[types.UID]state
}

func newBoard() *board { return &board{states: map[types.UID]state{}} }

// stateOf returns the state of a set, or false if it is not known yet.
func (b *board) stateOf(set types.UID) (state, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, known := b.states[set]
	return found, known
}

// replace replaces all states, and returns the sets that have another one.
func (b *board) replace(states map[types.UID]state) map[types.UID]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := map[types.UID]bool{}
	for uid, state := range states {
		if b.states[uid] != state {
			changed[uid] = true
		}
	}
	b.states = states
	return changed
}

// writer makes the entries as the sets require.
type writer struct {
	*Controller
	// budget is the time that writes may still take. Its tokens are milliseconds.
	budget *rate.Limiter
}

func newWriter(c *Controller) *writer {
	return &writer{Controller: c, budget: rate.NewLimiter(rate.Limit(time.Second.Milliseconds()/writeShare), int(writeBurst.Milliseconds()))}
}

// pause returns how long to wait until the budget permits the next write.
func (w *writer) pause() time.Duration {
	missing := max(0, -w.budget.TokensAt(w.Now()))
	return time.Duration(missing * writeShare * float64(time.Millisecond))
}

// spend takes the duration of writes from the budget.
func (w *writer) spend(took time.Duration) {
	for left := max(took, leastWrite); left > 0; left -= writeBurst {
		// One reservation must not exceed the burst.
		w.budget.ReserveN(w.Now(), int(min(left, writeBurst).Milliseconds()))
	}
}

// Reconcile writes the configurations that differ. One worker calls it.
func (w *writer) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if wait := w.pause(); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	authority, err := w.configMap(ctx, certificates.BundleName)
	if err != nil {
		return reconcile.Result{}, err
	}
	server := w.server()
	server.Client.CABundle = []byte(authority.Data[certificates.BundleKey])
	sets, cached := w.acceptedSets(), w.current()
	plan := decide(server, sets, &cached)
	wrote := !equal(plan.Lists, lists(&cached))
	if wrote {
		// What stays until something else is stored must not depend on an old cache.
		current, err := w.live(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		if !sameVersions(&cached, &current) {
			plan = decide(server, sets, &current)
		}
		if written, err := w.put(ctx, &current, plan.Lists); err != nil {
			if !apierrors.IsConflict(err) {
				w.fail(sets, plan, written, err)
			}
			return w.retried(0, err)
		}
	}
	if len(server.Client.CABundle) == 0 {
		plan = entries.Plan{}
	}
	w.post(sets, plan, wrote)
	return reconcile.Result{}, nil
}

// server returns where the API server reaches the injectors, without their CA, and which namespaces are excluded.
func (c *Controller) server() entries.Server {
	return entries.Server{Client: *c.Address.DeepCopy(), Namespace: c.Namespace, ExcludedNamespaces: c.ExcludedNamespaces}
}

// decide returns the next entries.
func decide(server entries.Server, sets []*v1alpha1.SidecarSet, current *configurations) entries.Plan {
	for i := range current {
		server.StoredVersions[i] = current[i].ResourceVersion
	}
	if len(server.Client.CABundle) == 0 {
		// API servers could not call the injectors by new entries.
		return server.Reduce(sets, lists(current))
	}
	return server.Plan(sets, lists(current))
}

// configurations are those of the entries. Those that do not exist have no UID.
type configurations [entries.Configurations]admissionregistrationv1.MutatingWebhookConfiguration

// lists returns the entries of the configurations.
func lists(of *configurations) entries.Lists {
	var lists entries.Lists
	for i := range of {
		lists[i] = of[i].Webhooks
	}
	return lists
}

// sameVersions reports whether the configurations are the same.
func sameVersions(a, b *configurations) bool {
	for i := range a {
		if a[i].UID != b[i].UID || a[i].ResourceVersion != b[i].ResourceVersion {
			return false
		}
	}
	return true
}

// equal reports whether the entries are the same.
func equal(a, b entries.Lists) bool {
	for i := range a {
		if len(a[i]) != len(b[i]) || !equality.Semantic.DeepEqual(a[i], b[i]) {
			return false
		}
	}
	return true
}

// current returns the configurations of the cache.
func (c *Controller) current() configurations {
	var current configurations
	for i := range current {
		if found, ok := stored[*admissionregistrationv1.MutatingWebhookConfiguration](c.Configurations, entries.ConfigurationName(i)); ok {
			current[i] = *found
		}
	}
	return current
}

// live returns the configurations of the API server.
func (c *Controller) live(ctx context.Context) (configurations, error) {
	var current configurations
	group, ctx := errgroup.WithContext(ctx)
	for i := range current {
		group.Go(func() error {
			name := entries.ConfigurationName(i)
			if err := c.Live.Get(ctx, types.NamespacedName{Name: name}, &current[i]); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("get MutatingWebhookConfiguration %s: %w", name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	return current, err
}

// put writes the configurations that differ, and returns the lists that are stored then. An error does not stop the others:
// no write needs another one. The first one is returned.
func (w *writer) put(ctx context.Context, current *configurations, next entries.Lists) (written entries.Lists, first error) {
	written = lists(current)
	start, requested := w.Now(), false
	for i := range next {
		var err error
		switch {
		case len(next[i]) == len(written[i]) && equality.Semantic.DeepEqual(next[i], written[i]):
		case current[i].UID == "":
			err = fmt.Errorf("MutatingWebhookConfiguration %s does not exist: install it", entries.ConfigurationName(i))
		default:
			err, requested = w.replace(ctx, &current[i], next[i]), true
		}
		if err == nil {
			written[i] = next[i]
		} else if first == nil {
			first = err
		}
	}
	if requested {
		w.spend(w.Now().Sub(start))
	}
	return written, first
}

// replace replaces the entries of a configuration that is as it was read.
func (c *Controller) replace(ctx context.Context, configuration *admissionregistrationv1.MutatingWebhookConfiguration, list []admissionregistrationv1.MutatingWebhook) error {
	if list == nil {
		list = []admissionregistrationv1.MutatingWebhook{}
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": configuration.UID, "resourceVersion": configuration.ResourceVersion},
		"webhooks": list,
	})
	if err != nil {
		return fmt.Errorf("encode the entries of %s: %w", configuration.Name, err)
	}
	err = c.Client.Patch(ctx, configuration.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return fmt.Errorf("write the entries of %s: %w", configuration.Name, err)
	}
	return nil
}

// post makes the states of the entries known. Without a plan, those that exist stay.
func (c *Controller) post(sets []*v1alpha1.SidecarSet, plan entries.Plan, wrote bool) {
	states := make(map[types.UID]state, len(sets))
	for _, set := range sets {
		before, _ := c.board.stateOf(set.UID)
		now := before
		switch {
		case plan.Entered == nil:
			now.unavailable, now.failure = !before.entered, ""
		case plan.Entered[set.UID]:
			now = state{entered: true, generation: set.Status.InForce.Generation, since: before.since}
			if wrote && (!before.entered || before.generation != now.generation) {
				now.since = c.Now()
			}
		default:
			now = state{tooMany: plan.TooMany[set.UID]}
		}
		states[set.UID] = now
	}
	c.note(sets, states)
}

// fail makes known why sets have no entry although the plan has one.
func (c *Controller) fail(sets []*v1alpha1.SidecarSet, plan entries.Plan, written entries.Lists, err error) {
	states, names := make(map[types.UID]state, len(sets)), written.Names()
	for _, set := range sets {
		now, _ := c.board.stateOf(set.UID)
		now.failure = ""
		if plan.Entered[set.UID] && !names[set.Name] {
			now = state{failure: text.Message(err.Error())}
		}
		states[set.UID] = now
	}
	c.note(sets, states)
}

// note replaces the states of the entries, and enqueues the sets whose state has changed.
func (c *Controller) note(sets []*v1alpha1.SidecarSet, states map[types.UID]state) {
	changed := c.board.replace(states)
	for _, set := range sets {
		if changed[set.UID] || !c.isDescribed(set) {
			c.changed.Enqueue(client.ObjectKeyFromObject(set))
		}
	}
}

// isDescribed reports whether the set has the condition Injecting.
func (c *Controller) isDescribed(set *v1alpha1.SidecarSet) bool {
	return meta.FindStatusCondition(set.Status.Conditions, v1alpha1.SidecarSetInjecting) != nil
}

// describe sets the condition Injecting.
func (c *Controller) describe(set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus) {
	entry, known := c.board.stateOf(set.UID)
	if !known {
		return
	}
	condition := metav1.Condition{Type: v1alpha1.SidecarSetInjecting, Status: metav1.ConditionFalse, ObservedGeneration: set.Generation}
	old := meta.FindStatusCondition(status.Conditions, v1alpha1.SidecarSetInjecting)
	var reason accept.Reason
	switch {
	case set.Spec.InjectionStrategy.Paused:
		reason, condition.Message = accept.Paused, "spec.injectionStrategy.paused is true: new pods do not get the containers."
	case status.InForce == nil:
		reason, condition.Message = accept.NeverAccepted, "No generation has been accepted: see the condition Accepted."
	case entry.tooMany:
		reason, condition.Message = accept.TooManySets, tooMany()
	case entry.unavailable:
		reason, condition.Message = accept.InjectorUnavailable, fmt.Sprintf(
			"No injector has published its certificate authority in the ConfigMap %s/%s.", c.Namespace, certificates.BundleName)
	case entry.failure != "":
		reason, condition.Message = accept.NotWritten, "The webhook entry cannot be written: "+entry.failure
	case !entry.entered || entry.generation != status.InForce.Generation:
		return // The entry follows.
	default:
		condition.Status, reason, condition.ObservedGeneration = metav1.ConditionTrue, accept.Entered, entry.generation
		if entry.since.IsZero() && old != nil && old.Status == condition.Status && old.ObservedGeneration == condition.ObservedGeneration {
			return
		}
		since := entry.since
		if since.IsZero() {
			since = c.Now()
		}
		condition.Message = fmt.Sprintf("The webhook entry exists since %s. API servers use it within about a second.", since.UTC().Format(time.RFC3339))
	}
	condition.Reason = string(reason)
	meta.SetStatusCondition(&status.Conditions, condition)
}

// tooMany describes the bounds.
func tooMany() string {
	return "The cluster has no place for another webhook entry. Bind the set to named namespaces, by spec.namespace or by the label " +
		corev1.LabelMetadataName + " in spec.namespaceSelector: such sets share entries. Or delete sets."
}
