// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import "testing"

func TestRuntimeBroadcasts(t *testing.T) {
	cases := map[Runtime]bool{
		{"containerd", "v2.2.9"}:              true,
		{"containerd", "2.0.0"}:               true,
		{"containerd", "2.0.0+azure"}:         true,
		{"containerd", "v2.2.0-rc.1"}:         true,
		{"containerd", "v2.1.4-k3s1"}:         true,
		{"containerd", "2.0.0~rc.1+ds1-1"}:    true,
		{"containerd", "v10.0.0"}:             true,
		{"containerd", "v1.7.35"}:             false,
		{"containerd", "1.7.24~ds1"}:          false,
		{"containerd", "1.7.27-0ubuntu1.22"}:  false,
		{"containerd", "1.6.20~ds1"}:          false,
		{"containerd", "v1.7.0-beta.4-22-g2"}: false,
		{"containerd", "v1.99.0+2.0.0"}:       false,
		{"containerd", "f2c5d1c9"}:            false,
		{"containerd", "2"}:                   false,
		{"containerd", ""}:                    false,
		{"cri-o", "1.33.1"}:                   true,
		{"cri-o", ""}:                         true,
		{"docker", "28.0.1"}:                  false,
		{"cri-containerd", "2.0.0"}:           false,
		{"", "2.0.0"}:                         false,
	}
	for runtime, want := range cases {
		if got := runtime.broadcasts(); got != want {
			t.Errorf("%q %q: broadcasts() = %t, want %t", runtime.Name, runtime.Version, got, want)
		}
	}
}
