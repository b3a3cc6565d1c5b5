// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster/eventlog"
)

// pages is an API server with a number of events.
type pages struct {
	client.Reader
	events, requests int
}

func (p *pages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	p.requests++
	var o client.ListOptions
	o.ApplyOptions(options)
	at, _ := strconv.Atoi(o.Continue)
	end := min(at+int(o.Limit), p.events)
	events := list.(*corev1.EventList)
	events.Items = make([]corev1.Event, end-at)
	if end < p.events {
		events.Continue = strconv.Itoa(end)
	}
	return nil
}

func TestEvents(t *testing.T) {
	for name, test := range map[string]struct {
		pod                    string
		events, read, requests int
	}{
		"few events of a pod":  {"a", 700, 700, 2},
		"most events of a pod": {"a", 2000, 2000, 4},
		"many events of a pod": {"a", 100_000, 2000, 4},
		"events of all pods":   {"", 3000, 3000, 6},
	} {
		t.Run(name, func(t *testing.T) {
			server := &pages{events: test.events}
			events, err := eventlog.Events(t.Context(), server, "ns", test.pod)
			var truncated *eventlog.TruncatedError
			if errors.As(err, &truncated) != (test.read < test.events) || truncated == nil && err != nil {
				t.Errorf("error %v", err)
			}
			if len(events) != test.read || server.requests != test.requests {
				t.Errorf("%d events in %d requests, want %d in %d", len(events), server.requests, test.read, test.requests)
			}
		})
	}
}
