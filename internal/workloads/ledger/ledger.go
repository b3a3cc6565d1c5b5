// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger charges disruptions of available pods in the status of a PodDisruptionBudget, in the way in which the API server
// charges evictions: a compare-and-swap lowers disruptionsAllowed and adds the pod to disruptedPods. So evictions, deletions and
// updates share one count. Only kube-controller-manager raises it again: it counts a pod in disruptedPods as unhealthy until it sees
// that the pod terminates, or for two minutes. It is pure.
package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Lifetime is how long kube-controller-manager counts a pod as unhealthy because it is in disruptedPods, as long as the pod does
	// not terminate.
	Lifetime = 2 * time.Minute
	// Fresh is how long a charge permits to repeat the operation. After this time, it is renewed first. The rest of its lifetime is
	// for a request of a minute, the timeout of API servers, and for a cache of kube-controller-manager that is half a minute late.
	Fresh = Lifetime / 4
	// Most is the number of pods in disruptedPods beyond which nothing is charged. It is that of the API server for evictions.
	Most = 2000
)

// Updating is the annotation of a PodDisruptionBudget with the pods whose charge is that of an update, as POD=SECONDS/TARGET separated by
// commas. SECONDS is the time of the charge in disruptedPods, since 1970. A charge with another time belongs to an eviction or a deletion.
const Updating = "seamark.dev/updating"

// Disruption is the deletion or the update of an available pod.
type Disruption struct {
	// Pod is the name of the pod.
	Pod string
	// Target identifies what an update results in, such as a hash of its images, without commas. It is empty for a deletion, whose charge
	// only kube-controller-manager ends: the request may wait for webhooks.
	Target string
}

// Decision is which disruptions a budget permits.
type Decision struct {
	// Permitted are the pods that may be disrupted after the budget is written.
	Permitted []string
	// Charged is the budget to write, with the resource version of the old one: its status and the annotation [Updating] differ. It is
	// nil if nothing does.
	Charged *policyv1.PodDisruptionBudget
	// Refusal is why the other pods may not be disrupted, empty if there is none.
	Refusal string
}

// Charge decides which of the available pods may be disrupted, in this order, and charges them. A pod that is charged already is
// permitted and costs nothing.
func Charge(budget *policyv1.PodDisruptionBudget, disruptions []Disruption, now time.Time) Decision {
	if refusal := unusable(budget); refusal != "" {
		return Decision{Refusal: refusal}
	}
	var d Decision
	book := open(budget)
	for _, disruption := range disruptions {
		switch book.charge(disruption, now) {
		case refused:
			d.Refusal = book.refusal()
			continue
		case changed:
			d.Charged = book.budget
		}
		d.Permitted = append(d.Permitted, disruption.Pod)
	}
	if d.Charged != nil {
		book.close()
	}
	return d
}

// Release returns the budget without the charges of updates that have ended: the pods are ready with the result that was the target. It is
// nil if there is none. It keeps the charges of deletions, evictions and other updates of these pods.
func Release(budget *policyv1.PodDisruptionBudget, ended []Disruption) *policyv1.PodDisruptionBudget {
	book := open(budget)
	before := len(book.updating)
	for _, disruption := range ended {
		if update, charged := book.updating[disruption.Pod]; charged && update.target == disruption.Target {
			delete(book.status.DisruptedPods, disruption.Pod)
			delete(book.updating, disruption.Pod)
		}
	}
	if len(book.updating) == before {
		return nil
	}
	return book.close()
}

// book is a budget that is being changed.
type book struct {
	budget *policyv1.PodDisruptionBudget
	status *policyv1.PodDisruptionBudgetStatus
	// updating are the charges of updates by pod.
	updating map[string]update
}

// update is the charge of an update.
type update struct {
	seconds int64
	target  string
}

func open(budget *policyv1.PodDisruptionBudget) *book {
	b := &book{budget: budget.DeepCopy(), updating: map[string]update{}}
	b.status = &b.budget.Status
	for _, entry := range strings.Split(budget.Annotations[Updating], ",") {
		pod, rest, _ := strings.Cut(entry, "=")
		text, target, _ := strings.Cut(rest, "/")
		seconds, err := strconv.ParseInt(text, 10, 64)
		// The entry of a pod whose charge has ended, or belongs to another operation, is dropped.
		if charge, listed := b.status.DisruptedPods[pod]; err == nil && listed && charge.Unix() == seconds {
			b.updating[pod] = update{seconds, target}
		}
	}
	return b
}

// result is what a charge has changed.
type result int

const (
	refused result = iota
	unchanged
	changed
)

func (b *book) charge(disruption Disruption, now time.Time) result {
	pod, target := disruption.Pod, disruption.Target
	entry, listed := b.status.DisruptedPods[pod]
	age := now.Sub(entry.Time)
	before, updates := b.updating[pod]
	switch counted := listed && age < Lifetime; {
	// What relies on the charge of another update takes it over, or the end of that update would end it too early.
	case counted && age < Fresh && (!updates || before.target == target):
		return unchanged
	case counted:
	case b.status.DisruptionsAllowed <= 0 || len(b.status.DisruptedPods) >= Most:
		return refused
	default:
		b.status.DisruptionsAllowed--
	}
	if b.status.DisruptedPods == nil {
		b.status.DisruptedPods = map[string]metav1.Time{}
	}
	delete(b.updating, pod)
	if target != "" {
		// No eviction has an earlier time: one in the same second replaces the charge.
		now = now.Add(-time.Second)
		b.updating[pod] = update{now.Unix(), target}
	}
	b.status.DisruptedPods[pod] = metav1.NewTime(now.Truncate(time.Second))
	return changed
}

// refusal returns why the last charge was refused.
func (b *book) refusal() string {
	if b.status.DisruptionsAllowed > 0 {
		return fmt.Sprintf("PodDisruptionBudget %s has %d pods whose disruption is not confirmed", b.budget.Name, len(b.status.DisruptedPods))
	}
	return fmt.Sprintf("PodDisruptionBudget %s needs %d healthy pods and has %d, of %d", b.budget.Name, b.status.DesiredHealthy,
		b.status.CurrentHealthy, b.status.ExpectedPods)
}

// close writes the annotation, and returns the budget.
func (b *book) close() *policyv1.PodDisruptionBudget {
	entries := make([]string, 0, len(b.updating))
	for _, pod := range slices.Sorted(maps.Keys(b.updating)) {
		entries = append(entries, fmt.Sprintf("%s=%d/%s", pod, b.updating[pod].seconds, b.updating[pod].target))
	}
	if len(entries) == 0 {
		delete(b.budget.Annotations, Updating)
		return b.budget
	}
	metav1.SetMetaDataAnnotation(&b.budget.ObjectMeta, Updating, strings.Join(entries, ","))
	return b.budget
}

// unusable returns why the numbers of the budget are not those of its specification, empty if they are.
func unusable(budget *policyv1.PodDisruptionBudget) string {
	failed := meta.FindStatusCondition(budget.Status.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case budget.Status.ObservedGeneration < budget.Generation:
		return fmt.Sprintf("PodDisruptionBudget %s has changed, and kube-controller-manager has not counted its pods yet", budget.Name)
	case failed != nil && failed.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf("kube-controller-manager cannot count the pods of PodDisruptionBudget %s: %s", budget.Name, failed.Message)
	}
	return ""
}
