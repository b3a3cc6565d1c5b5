// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather reads the events of probes with a client, for package history.
package gather

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
	// maxEvents is the maximum number of events of one reason that are read, the oldest ones.
	maxEvents = 100_000
)

// Events lists the events of probes in the namespace, or in all namespaces if it is empty: those of
// one pod, or of all pods if its name is empty. The API server can select events only by one reason
// at a time.
func Events(ctx context.Context, reader client.Reader, namespace, pod string) ([]corev1.Event, error) {
	var found []corev1.Event
	for _, reason := range []string{v1alpha1.EventReasonProbeSucceeded, v1alpha1.EventReasonProbeFailed, v1alpha1.EventReasonProbeError} {
		selector := fields.Set{"reason": reason}
		if pod != "" {
			selector["involvedObject.name"] = pod
		}
		read := 0
		for token := ""; read == 0 || token != "" && read < maxEvents; {
			var page corev1.EventList
			err := reader.List(ctx, &page, client.InNamespace(namespace),
				client.MatchingFieldsSelector{Selector: selector.AsSelector()}, client.Limit(eventPage), client.Continue(token))
			if err != nil {
				return nil, fmt.Errorf("list events: %w", err)
			}
			found, token = append(found, page.Items...), page.Continue
			read += max(len(page.Items), 1)
		}
	}
	return found, nil
}
