// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/isolate"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// reasonType is the reason of the condition Decodable.
	reasonType = "InvalidType"
	// refusedPause is when a refused condition is written again.
	refusedPause = 10 * time.Minute
)

// Isolated reports whether nothing may be planned for the object now, because it cannot be decoded: what it owns stays
// as it is. It writes the condition and the event that say so, and removes the condition when the object has been
// corrected. The object is one of the cache.
func Isolated(ctx context.Context, to client.Client, recorder record.EventRecorder, now time.Time, kind schema.GroupVersionKind, object client.Object) (bool, reconcile.Result, error) {
	why, stored := isolate.Of(object), conditionsOf(object)
	index := slices.IndexFunc(stored.list, func(c condition) bool { return c["type"] == v1alpha1.ConditionDecodable })
	if why == nil && index < 0 {
		return false, reconcile.Result{}, nil
	}
	if why != nil && index >= 0 && stored.list[index]["status"] == string(metav1.ConditionFalse) && stored.list[index]["message"] == why.Error() {
		return true, reconcile.Result{}, nil
	}
	next := slices.DeleteFunc(stored.list, func(c condition) bool { return c["type"] == v1alpha1.ConditionDecodable })
	if why != nil {
		next = append(next, stored.undecodable(object, why, now))
	}
	written, err := mergeStatus(ctx, to, kind, object, map[string]any{"conditions": next})
	if apierrors.IsInvalid(err) && why != nil {
		// API servers before Kubernetes 1.33 refuse the status of an object that does not fit its schema.
		recorder.Event(object, corev1.EventTypeWarning, reasonType, text.Message(why.Error()))
		return true, reconcile.Result{RequeueAfter: refusedPause}, nil
	}
	if err != nil {
		return true, reconcile.Result{}, fmt.Errorf("write the conditions of %s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
	}
	if written == "" || why == nil {
		// The cache gets another version.
		return true, reconcile.Result{RequeueAfter: retryDelay}, nil
	}
	recorder.Event(object, corev1.EventTypeWarning, reasonType, text.Message(why.Error()))
	return true, reconcile.Result{}, nil
}

// isolated is like Isolated.
func (b *base) isolated(ctx context.Context, key types.NamespacedName) (bool, reconcile.Result, error) {
	set := get(b.Stores.Sets, key)
	if set == nil || set.GetDeletionTimestamp() != nil || b.Pause.Active() {
		return false, reconcile.Result{}, nil
	}
	return Isolated(ctx, b.Client, b.Recorder, b.Now(), b.kind, set)
}

type condition map[string]any

// conditions are those of the status of any kind.
type conditions struct {
	list []condition
	// observed is whether they have the field observedGeneration.
	observed bool
}

// conditionsOf returns the conditions of an object without a copy of the others if it can be decoded and has no
// condition Decodable, as nearly all objects.
func conditionsOf(object client.Object) conditions {
	status := reflect.ValueOf(object).Elem().FieldByName("Status")
	if status.Kind() != reflect.Struct {
		return conditions{}
	}
	field := status.FieldByName("Conditions")
	if field.Kind() != reflect.Slice {
		return conditions{}
	}
	has := isolate.Of(object) != nil
	for i := range field.Len() {
		has = has || field.Index(i).FieldByName("Type").String() == v1alpha1.ConditionDecodable
	}
	if !has {
		return conditions{}
	}
	found := conditions{}
	_, found.observed = field.Type().Elem().FieldByName("ObservedGeneration")
	// Conditions always encode.
	encoded, _ := json.Marshal(field.Interface())
	_ = json.Unmarshal(encoded, &found.list)
	return found
}

// undecodable returns the condition of an object that cannot be decoded.
func (c conditions) undecodable(object client.Object, why error, now time.Time) condition {
	next := condition{
		"type": v1alpha1.ConditionDecodable, "status": metav1.ConditionFalse, "reason": reasonType, "message": why.Error(),
		"lastTransitionTime": metav1.NewTime(now.UTC().Truncate(time.Second)),
	}
	if c.observed {
		next["observedGeneration"] = object.GetGeneration()
	}
	for _, before := range c.list {
		if before["type"] == next["type"] && before["status"] == string(metav1.ConditionFalse) {
			next = maps.Clone(next)
			next["lastTransitionTime"] = before["lastTransitionTime"]
		}
	}
	return next
}
