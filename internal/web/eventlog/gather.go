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
	// maxEvents is the maximum number of events that are read, the oldest ones.
	maxEvents = 100_000
)

// Events lists the events of probes in the namespace, or in all namespaces if it is empty: those of
// one pod, or of all pods if its name is empty. It may return events that are not about probes.
func Events(ctx context.Context, reader client.Reader, namespace, pod string) ([]corev1.Event, error) {
	// The API server reads all events of the namespace for each list, so there is one for all reasons.
	selector := fields.Set{"source": v1alpha1.EventSourceComponent}
	if pod != "" {
		selector["involvedObject.name"] = pod
	}
	var found []corev1.Event
	for token := ""; ; {
		var page corev1.EventList
		err := reader.List(ctx, &page, client.InNamespace(namespace),
			client.MatchingFieldsSelector{Selector: selector.AsSelector()}, client.Limit(eventPage), client.Continue(token))
		if err != nil {
			return nil, fmt.Errorf("list events: %w", err)
		}
		found, token = append(found, page.Items...), page.Continue
		if token == "" || len(page.Items) == 0 || len(found) >= maxEvents {
			return found, nil
		}
	}
}
