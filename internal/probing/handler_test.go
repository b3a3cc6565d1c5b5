// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/probing"
)

// TestHandlersCoverProbeHandler fails when core/v1 gains a handler that the table lacks.
func TestHandlersCoverProbeHandler(t *testing.T) {
	var fields []probe.Handler
	handlers := reflect.TypeFor[corev1.ProbeHandler]()
	for i := range handlers.NumField() {
		name, _, _ := strings.Cut(handlers.Field(i).Tag.Get("json"), ",")
		fields = append(fields, probe.Handler(name))

		var h corev1.ProbeHandler
		field := reflect.ValueOf(&h).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		got, err := probe.HandlerOf(&h)
		if err != nil || got != probe.Handler(name) {
			t.Errorf("HandlerOf(%s) = %q, %v, want %q", name, got, err, name)
		}
	}
	slices.Sort(fields)
	if diff := cmp.Diff(slices.Sorted(slices.Values(probe.Handlers())), fields); diff != "" {
		t.Errorf("fields of core/v1 ProbeHandler (-Handlers +fields):\n%s", diff)
	}
}

func TestHandlerOfRequiresExactlyOne(t *testing.T) {
	cases := map[string]struct {
		handler corev1.ProbeHandler
		want    string
	}{
		"none": {want: "probe: must have exactly one of exec, httpGet, tcpSocket and grpc, has none"},
		"two": {
			handler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}, GRPC: &corev1.GRPCAction{}},
			want:    "probe: must have exactly one of exec, httpGet, tcpSocket and grpc, has exec and grpc",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := probe.HandlerOf(&tc.handler); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
