// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/test/expect"
)

// discovery answers from the time since its start.
type discovery struct {
	meta.RESTMapper
	start time.Time
	// served is when each kind is served; broken is until when requests fail.
	served map[string]time.Duration
	broken time.Duration
	calls  int
}

func (d *discovery) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	d.calls++
	switch elapsed := time.Since(d.start); {
	case elapsed < d.broken:
		return nil, errors.New("connection refused")
	case elapsed < d.served[kind.Kind]:
		return nil, &meta.NoKindMatchError{GroupKind: kind}
	default:
		return &meta.RESTMapping{}, nil
	}
}

func kinds() []schema.GroupVersionKind {
	kind := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind}
	}
	return []schema.GroupVersionKind{
		kind("apps.kruise.io", "NodePodProbe"), kind("apps.kruise.io", "PodProbeMarker"), kind("seamark.dev", "ProbeReport"),
	}
}

func TestAwaitCRDs(t *testing.T) {
	const waits, ends = `"Waiting for the CRDs"`, `"The API server serves the CRDs"`
	cases := map[string]struct {
		discovery discovery
		// lines are parts of the expected lines. latest is the latest end of the wait, calls is the
		// maximum number of requests.
		lines  []string
		latest time.Duration
		calls  int
	}{
		"served at once": {calls: 3},
		"served later": {
			discovery: discovery{served: map[string]time.Duration{
				"PodProbeMarker": 3 * time.Second, "NodePodProbe": time.Second, "ProbeReport": time.Second,
			}},
			lines: []string{
				"serve nodepodprobes.apps.kruise.io/v1alpha1, podprobemarkers.apps.kruise.io/v1alpha1, probereports.seamark.dev/v1alpha1:",
				"serve podprobemarkers.apps.kruise.io/v1alpha1:", ends,
			},
			latest: 8 * time.Second, calls: 30,
		},
		"served after minutes": {
			discovery: discovery{served: map[string]time.Duration{"PodProbeMarker": 150 * time.Second}},
			lines:     []string{waits, waits, waits, ends},
			latest:    162 * time.Second, calls: 90,
		},
		"API server comes later": {
			discovery: discovery{broken: time.Second},
			lines:     []string{"connection refused", ends},
			latest:    3 * time.Second, calls: 30,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
				tc.discovery.start = time.Now()
				c := &crds{mapper: &tc.discovery, kinds: kinds(), log: log}
				if !c.await(t.Context()) {
					t.Fatal("stopped waiting")
				}
				if took := time.Since(tc.discovery.start); took > tc.latest {
					t.Errorf("waited for %s, want at most %s", took, tc.latest)
				}
				if tc.discovery.calls > tc.calls {
					t.Errorf("%d requests, want at most %d", tc.discovery.calls, tc.calls)
				}
				if err := c.unready(nil); err != nil {
					t.Errorf("not ready after the wait: %v", err)
				}
				if len(lines) != len(tc.lines) {
					t.Fatalf("log:\n%s\nwant %d lines", strings.Join(lines, "\n"), len(tc.lines))
				}
				for i, part := range tc.lines {
					if !strings.Contains(lines[i], part) {
						t.Errorf("line %d is %q, want %q in it", i, lines[i], part)
					}
				}
			})
		})
	}
}

func TestAwaitCRDsUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := &crds{kinds: kinds(), mapper: &discovery{start: time.Now(), broken: time.Hour}, log: funcr.New(func(_, _ string) {}, funcr.Options{})}
		if c.await(ctx) {
			t.Error("the wait ends although the API server does not answer")
		}
		if err := c.unready(nil); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("not ready because of %v, want the error of the API server", err)
		}
	})
}

func TestAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	for field, addresses := range map[string]Addresses{
		"health.bindAddress":  {Health: address},
		"metrics.bindAddress": {Health: "127.0.0.1:0", Metrics: address},
		"pprof.bindAddress":   {Health: "0", Profiles: address},
	} {
		if _, err := New(&rest.Config{}, logr.Discard(), addresses, nil); err == nil || !strings.Contains(err.Error(), field+` "`+address) {
			t.Errorf("error %v, want one that names %s and %s", err, field, address)
		}
	}
}
