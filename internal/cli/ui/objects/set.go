// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/cluster/eventlog"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

// Set reads what is known about a set besides its rollout: the pods that are not available, and the newest events. It reads the
// set, and lists the events of the set and, if the rollout is not complete, the pods that it selects, in pages: with 5,000 nodes,
// those of a DaemonSet are 10 pages. The API server reads all pods and events of the namespace for this. Without the permission
// for pods or events, the notes say so.
func Set(ctx context.Context, reader client.Reader, id model.SetID, now time.Time) (model.SetDetails, error) {
	kind := kinds.ByName(id.Kind)
	if kind == nil || kind.Role != kinds.Set {
		return model.SetDetails{}, web.NoSet(id)
	}
	object := kind.New()
	err := reader.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, object)
	switch missing, failure := cluster.MissingOf(err, "get", permission.Resource(kind.Definition()), id.Namespace); {
	case apierrors.IsNotFound(err):
		return model.SetDetails{}, web.NoSet(id)
	case missing != nil:
		return model.SetDetails{}, &web.Refusal{Status: http.StatusForbidden, Message: fmt.Sprintf("%s; %s", missing, missing.Fix())}
	case failure != nil:
		return model.SetDetails{}, failure
	}
	details := model.SetDetails{Waits: []model.PodWait{}}
	waits, err := waitsOf(ctx, reader, object, now)
	if details.PodsNote, err = noteOf(err, permission.Pods, id.Namespace); err != nil {
		return details, err
	}
	details.Waits, details.WaitCount = append(details.Waits, waits[:min(len(waits), model.MaxWaits)]...), len(waits)
	events, err := eventlog.OfObject(ctx, reader, id.Namespace, kind.Kind, id.Name)
	details.Note, err = noteOf(err, permission.Events, id.Namespace)
	details.Events = model.EventsOf(events, object.GetUID())
	return details, err
}

// noteOf returns the note for users if a resource cannot be listed, or the error.
func noteOf(err error, resource permission.Resource, namespace string) (string, error) {
	var truncated *eventlog.TruncatedError
	if errors.As(err, &truncated) {
		return truncated.Error(), nil
	}
	missing, failure := cluster.MissingOf(err, "list", resource, namespace)
	if missing != nil {
		return missing.String(), nil
	}
	return "", failure
}

// waitsOf returns what the pods of the set wait for, first those that a user has to do something about, then by name.
func waitsOf(ctx context.Context, reader client.Reader, object kinds.Object, now time.Time) ([]model.PodWait, error) {
	// The kind is one of those that have a view.
	set, _ := setview.Of(object)
	set.Rules.Now = now
	if set.State().Phase == rollout.Complete {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	var waits []model.PodWait
	err = cluster.Each(ctx, reader, &corev1.PodList{}, func(pod *corev1.Pod) {
		if !metav1.IsControlledBy(pod, object) {
			return
		}
		if wait := rollout.WaitOf(pod, set.Rules); wait.Why != "" {
			waits = append(waits, model.PodWait{Name: pod.Name, Why: text.Message(wait.Why), Problem: wait.Wrong})
		}
	}, client.InNamespace(object.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
	slices.SortFunc(waits, func(a, b model.PodWait) int {
		if a.Problem != b.Problem {
			return map[bool]int{true: -1, false: 1}[a.Problem]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return waits, err
}
