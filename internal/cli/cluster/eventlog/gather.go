// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventlog reads the events of probes with a client, for package history.
package eventlog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// eventPage is the number of events in one response.
	eventPage = 500
	// maxOfPod and maxEvents are the maximum numbers of events that are read, of one pod and of all.
	maxOfPod, maxEvents = 2000, 100_000
)

// TruncatedError means that there are more events than were read.
type TruncatedError struct {
	// Read is how many were read.
	Read int
}

// Error returns the message.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("there are more than %d events, so only some of the changes are known", e.Read)
}

// Events lists the events of probes in the namespace, or in all namespaces if it is empty: those of
// one pod, or of all pods if its name is empty. It may return events that are not about probes. If there are too
// many, it returns the first ones and a TruncatedError.
func Events(ctx context.Context, reader client.Reader, namespace, pod string) ([]corev1.Event, error) {
	// The API server reads all events of the namespace for each list, so there is one for all reasons.
	selector, limit := fields.Set{"source": v1alpha1.EventSourceComponent}, maxEvents
	if pod != "" {
		selector["involvedObject.name"], limit = pod, maxOfPod
	}
	return read(ctx, reader, namespace, selector, limit)
}

// OfObject lists the events of one object, of any component and also of earlier objects with the same name. If there are too
// many, it returns the first ones and a TruncatedError.
func OfObject(ctx context.Context, reader client.Reader, namespace, kind, name string) ([]corev1.Event, error) {
	return read(ctx, reader, namespace, fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}, maxOfPod)
}

// read lists events until there are at least as many as the limit.
func read(ctx context.Context, reader client.Reader, namespace string, selector fields.Set, limit int) ([]corev1.Event, error) {
	var found []corev1.Event
	for token := ""; ; {
		var page corev1.EventList
		err := reader.List(ctx, &page, client.InNamespace(namespace),
			client.MatchingFieldsSelector{Selector: selector.AsSelector()}, client.Limit(eventPage), client.Continue(token))
		if err != nil {
			return nil, fmt.Errorf("list events: %w", err)
		}
		for i := range page.Items {
			// Nobody reads them.
			page.Items[i].ManagedFields = nil
		}
		found, token = append(found, page.Items...), page.Continue
		switch {
		case token == "" || len(page.Items) == 0:
			return found, nil
		case len(found) >= limit:
			return found, &TruncatedError{Read: len(found)}
		}
	}
}
