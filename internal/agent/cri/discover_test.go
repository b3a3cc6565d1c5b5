// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestDiscover(t *testing.T) {
	const crio, k3s = "/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock"
	cases := map[string]struct {
		override string
		serving  []string
		want     string
		wantErr  []string
	}{
		"containerd":          {serving: []string{"/run/containerd/containerd.sock"}, want: "unix:///run/containerd/containerd.sock"},
		"two runtimes":        {serving: []string{k3s, crio}, want: "unix://" + crio},
		"k3s":                 {serving: []string{k3s}, want: "unix://" + k3s},
		"cri-dockerd":         {serving: []string{"/run/cri-dockerd.sock"}, want: "unix:///run/cri-dockerd.sock"},
		"override, URL":       {override: "unix:///x/cri.sock", serving: []string{k3s}, want: "unix:///x/cri.sock"},
		"override, path":      {override: "/x/cri.sock", want: "unix:///x/cri.sock"},
		"no runtime":          {wantErr: append(wellKnownSockets(), "no container runtime")},
		"unsupported scheme":  {override: "tcp://127.0.0.1:80", wantErr: []string{"tcp://127.0.0.1:80", "unix:///path"}},
		"relative path":       {override: "cri.sock", wantErr: []string{"cri.sock", "absolute path"}},
		"scheme without path": {override: "unix://", wantErr: []string{"unix:///path"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			serving := map[string]bool{}
			for _, path := range tc.serving {
				serving[path] = true
			}
			got, err := discover(tc.override, func(path string) bool { return serving[path] })
			if got != tc.want || (err != nil) != (tc.wantErr != nil) {
				t.Fatalf("discover() = %q, %v, want %q", got, err, tc.want)
			}
			for _, part := range tc.wantErr {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}

// The chart and config/agent mount only /run of the node into the agent.
func TestWellKnownSocketsAreBelowRun(t *testing.T) {
	for _, path := range wellKnownSockets() {
		if !strings.HasPrefix(path, "/run/") {
			t.Errorf("%s is not below /run", path)
		}
	}
}

func TestAnswers(t *testing.T) {
	folder := t.TempDir()
	mute := filepath.Join(folder, "mute.sock")
	listener, err := net.Listen("unix", mute)
	expect.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	cases := map[string]struct {
		path string
		want bool
	}{
		"runtime":               {path: critest.New(t, critest.Streamed).Socket(), want: true},
		"no socket":             {path: filepath.Join(folder, "none.sock")},
		"socket without server": {path: mute},
		"server without CRI":    {path: serveNothing(t)},
		"relative path":         {path: "cri.sock"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect.Equal(t, fmt.Sprintf("answers(%s)", tc.path), tc.want, answers(t.Context(), tc.path))
		})
	}
}
