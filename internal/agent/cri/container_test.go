// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/expect"
)

var (
	running = runtimeapi.ContainerState_CONTAINER_RUNNING
	exited  = runtimeapi.ContainerState_CONTAINER_EXITED
)

func web() identity.ContainerKey { return identity.ContainerKey{PodUID: "u1", Name: "web"} }

func statusOf(state runtimeapi.ContainerState, edit func(*runtimeapi.ContainerStatus)) *runtimeapi.ContainerStatus {
	s := &runtimeapi.ContainerStatus{
		Id: "c1", State: state, CreatedAt: 1, Metadata: &runtimeapi.ContainerMetadata{Name: "web"},
		Labels: map[string]string{labelPodUID: "u1", labelContainer: "web"},
	}
	edit(s)
	return s
}

func TestDetailedInstanceOf(t *testing.T) {
	long := strings.Repeat("é", 400)
	ended := func(code int32, reason, message string) *runtimeapi.ContainerStatus {
		return statusOf(exited, func(s *runtimeapi.ContainerStatus) { s.ExitCode, s.Reason, s.Message = code, reason, message })
	}
	same := func(*runtimeapi.ContainerStatus) {}
	cases := map[string]struct {
		status *runtimeapi.ContainerStatus
		// want is the instance as describe returns it. It is empty if there is none.
		want string
	}{
		"running": {
			statusOf(running, func(s *runtimeapi.ContainerStatus) { s.StartedAt = startedAt().UnixNano() }), "u1/web c1 running since 1700000000",
		},
		"completed":                  {ended(0, "Completed", ""), "u1/web c1 not running: exited with code 0"},
		"out of memory":              {ended(137, "OOMKilled", ""), "u1/web c1 not running: exited with code 137 (OOMKilled)"},
		"never started":              {ended(128, "StartError", "no such file\n"), "u1/web c1 not running: exited with code 128 (StartError: no such file)"},
		"long message":               {ended(0, "", long), "u1/web c1 not running: exited with code 0 (" + long[:492]},
		"created, not started":       {status: statusOf(runtimeapi.ContainerState_CONTAINER_CREATED, same)},
		"unknown state":              {status: statusOf(runtimeapi.ContainerState_CONTAINER_UNKNOWN, same)},
		"not created by the kubelet": {status: statusOf(running, func(s *runtimeapi.ContainerStatus) { s.Labels = nil })},
		"no status":                  {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if instance, ok := detailedInstanceOf(tc.status); ok {
				got = describe(instance.Instance)
			}
			expect.Equal(t, "detailedInstanceOf()", tc.want, got)
		})
	}
}

func webInstance(id string, createdAt int64, attempt uint32, running bool) orderedInstance {
	return orderedInstance{Instance: Instance{ContainerKey: web(), ID: id, Running: running}, createdAt: createdAt, attempt: attempt}
}

func TestInstancesPut(t *testing.T) {
	cases := map[string]struct {
		known   []orderedInstance
		put     orderedInstance
		want    orderedInstance
		changes bool
	}{
		"first instance": {put: webInstance("c1", 1, 0, true), want: webInstance("c1", 1, 0, true), changes: true},
		"unchanged": {
			known: []orderedInstance{webInstance("c1", 1, 0, true)}, put: webInstance("c1", 1, 0, true), want: webInstance("c1", 1, 0, true),
		},
		"ended": {
			known: []orderedInstance{webInstance("c1", 1, 0, true)}, put: webInstance("c1", 1, 0, false), want: webInstance("c1", 1, 0, false), changes: true,
		},
		"late status of ended instance": {
			known: []orderedInstance{webInstance("c1", 1, 0, false)}, put: webInstance("c1", 1, 0, true), want: webInstance("c1", 1, 0, false),
		},
		"next instance": {
			known: []orderedInstance{webInstance("c1", 1, 0, false)}, put: webInstance("c2", 2, 1, true), want: webInstance("c2", 2, 1, true), changes: true,
		},
		"older instance": {
			known: []orderedInstance{webInstance("c2", 2, 1, true)}, put: webInstance("c1", 1, 0, false), want: webInstance("c2", 2, 1, true),
		},
		"creation time before attempt": {
			known: []orderedInstance{webInstance("c1", 1, 9, false)}, put: webInstance("c2", 2, 0, true), want: webInstance("c2", 2, 0, true), changes: true,
		},
		"next instance, clock set back": {
			known: []orderedInstance{webInstance("c1", 9, 0, false)}, put: webInstance("c2", 2, 1, true), want: webInstance("c2", 2, 1, true), changes: true,
		},
		"previous instance, clock set back": {
			known: []orderedInstance{webInstance("c2", 2, 1, true)}, put: webInstance("c1", 9, 0, false), want: webInstance("c2", 2, 1, true),
		},
		"ended instances, clock set back": {
			known: []orderedInstance{webInstance("c2", 2, 1, false)}, put: webInstance("c1", 9, 0, false), want: webInstance("c2", 2, 1, false),
		},
		"attempt at same creation time": {
			known: []orderedInstance{webInstance("c1", 1, 1, false)}, put: webInstance("c2", 1, 2, true), want: webInstance("c2", 1, 2, true), changes: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			known := instances{}
			for _, s := range tc.known {
				known.put(s)
			}
			expect.Equal(t, "put()", tc.changes, known.put(tc.put))
			expect.Equal(t, "instances", instances{web(): tc.want}, known, cmp.AllowUnexported(orderedInstance{}))
		})
	}
}
