// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probeid"
)

var (
	running = runtimeapi.ContainerState_CONTAINER_RUNNING
	exited  = runtimeapi.ContainerState_CONTAINER_EXITED
)

// web is a container of a pod.
func web() probeid.Container { return probeid.Container{PodUID: "u1", Name: "web"} }

// statusOf makes a status of web.
func statusOf(state runtimeapi.ContainerState, edit func(*runtimeapi.ContainerStatus)) *runtimeapi.ContainerStatus {
	s := &runtimeapi.ContainerStatus{
		Id: "c1", State: state, CreatedAt: 1, Metadata: &runtimeapi.ContainerMetadata{Name: "web"},
		Labels: map[string]string{labelPodUID: "u1", labelContainer: "web"},
	}
	edit(s)
	return s
}

func TestDetailedOf(t *testing.T) {
	at := time.Unix(1700000000, 5)
	long := strings.Repeat("é", 400)
	cases := map[string]struct {
		status *runtimeapi.ContainerStatus
		want   *Container
	}{
		"running": {
			status: statusOf(running, func(s *runtimeapi.ContainerStatus) { s.StartedAt = at.UnixNano() }),
			want:   &Container{Container: web(), ID: "c1", Running: true, StartedAt: at},
		},
		"completed": {
			status: statusOf(exited, func(s *runtimeapi.ContainerStatus) { s.Reason = "Completed" }),
			want:   &Container{Container: web(), ID: "c1", Reason: "exited with code 0"},
		},
		"out of memory": {
			status: statusOf(exited, func(s *runtimeapi.ContainerStatus) { s.ExitCode, s.Reason = 137, "OOMKilled" }),
			want:   &Container{Container: web(), ID: "c1", Reason: "exited with code 137 (OOMKilled)"},
		},
		"never started": {
			status: statusOf(exited, func(s *runtimeapi.ContainerStatus) {
				s.ExitCode, s.Reason, s.Message = 128, "StartError", "no such file\n"
			}),
			want: &Container{Container: web(), ID: "c1", Reason: "exited with code 128 (StartError: no such file)"},
		},
		"a long message": {
			status: statusOf(exited, func(s *runtimeapi.ContainerStatus) { s.Message = long }),
			want:   &Container{Container: web(), ID: "c1", Reason: "exited with code 0 (" + long[:492]},
		},
		"made and not started": {status: statusOf(runtimeapi.ContainerState_CONTAINER_CREATED, func(*runtimeapi.ContainerStatus) {})},
		"in an unknown state":  {status: statusOf(runtimeapi.ContainerState_CONTAINER_UNKNOWN, func(*runtimeapi.ContainerStatus) {})},
		"not of the kubelet":   {status: statusOf(running, func(s *runtimeapi.ContainerStatus) { s.Labels = nil })},
		"nothing":              {status: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := detailedOf(tc.status)
			if ok != (tc.want != nil) {
				t.Fatalf("detailedOf() = %+v, %t", got, ok)
			}
			if tc.want == nil {
				return
			}
			if diff := cmp.Diff(*tc.want, got.Container); diff != "" {
				t.Errorf("detailedOf() (-want +got):\n%s", diff)
			}
		})
	}
}

// startWith makes a start of web.
func startWith(id string, createdAt int64, attempt uint32, running bool) start {
	return start{Container: Container{Container: web(), ID: id, Running: running}, createdAt: createdAt, attempt: attempt}
}

func TestTablePut(t *testing.T) {
	cases := map[string]struct {
		known   []start
		put     start
		want    start
		changes bool
	}{
		"the first":            {put: startWith("c1", 1, 0, true), want: startWith("c1", 1, 0, true), changes: true},
		"the same again":       {known: []start{startWith("c1", 1, 0, true)}, put: startWith("c1", 1, 0, true), want: startWith("c1", 1, 0, true)},
		"its end":              {known: []start{startWith("c1", 1, 0, true)}, put: startWith("c1", 1, 0, false), want: startWith("c1", 1, 0, false), changes: true},
		"late news of its run": {known: []start{startWith("c1", 1, 0, false)}, put: startWith("c1", 1, 0, true), want: startWith("c1", 1, 0, false)},
		"the next":             {known: []start{startWith("c1", 1, 0, false)}, put: startWith("c2", 2, 1, true), want: startWith("c2", 2, 1, true), changes: true},
		"the one before":       {known: []start{startWith("c2", 2, 1, true)}, put: startWith("c1", 1, 0, false), want: startWith("c2", 2, 1, true)},
		"by time, not number":  {known: []start{startWith("c1", 1, 9, false)}, put: startWith("c2", 2, 0, true), want: startWith("c2", 2, 0, true), changes: true},
		"by number in a tie":   {known: []start{startWith("c1", 1, 1, false)}, put: startWith("c2", 1, 2, true), want: startWith("c2", 1, 2, true), changes: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			known := table{}
			for _, s := range tc.known {
				known.put(s)
			}
			if changes := known.put(tc.put); changes != tc.changes {
				t.Errorf("put() = %t, want %t", changes, tc.changes)
			}
			if diff := cmp.Diff(table{web(): tc.want}, known, cmp.AllowUnexported(start{})); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}
