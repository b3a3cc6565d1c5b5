// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
)

func TestDiscover(t *testing.T) {
	const crio, k3s = "/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock"
	cases := map[string]struct {
		override string
		serving  []string
		want     string
		refused  []string
	}{
		"containerd":           {serving: []string{"/run/containerd/containerd.sock"}, want: "unix:///run/containerd/containerd.sock"},
		"the first of two":     {serving: []string{k3s, crio}, want: "unix://" + crio},
		"k3s":                  {serving: []string{k3s}, want: "unix://" + k3s},
		"cri-dockerd":          {serving: []string{"/run/cri-dockerd.sock"}, want: "unix:///run/cri-dockerd.sock"},
		"an overriding URL":    {override: "unix:///x/cri.sock", serving: []string{k3s}, want: "unix:///x/cri.sock"},
		"an overriding path":   {override: "/x/cri.sock", want: "unix:///x/cri.sock"},
		"none":                 {refused: append(wellKnown(), "no container runtime")},
		"another scheme":       {override: "tcp://127.0.0.1:80", refused: []string{"tcp://127.0.0.1:80", "unix:///path"}},
		"a relative path":      {override: "cri.sock", refused: []string{"cri.sock", "absolute path"}},
		"a scheme and no path": {override: "unix://", refused: []string{"unix:///path"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			serving := map[string]bool{}
			for _, path := range tc.serving {
				serving[path] = true
			}
			got, err := Discover(tc.override, func(path string) bool { return serving[path] })
			if got != tc.want || (err != nil) != (tc.refused != nil) {
				t.Fatalf("Discover() = %q, %v, want %q", got, err, tc.want)
			}
			for _, part := range tc.refused {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

// The chart and config/agent give the agent /run of the node, and no other folder.
func TestWellKnownIsBelowRun(t *testing.T) {
	for _, path := range wellKnown() {
		if !strings.HasPrefix(path, "/run/") {
			t.Errorf("%s is not below /run", path)
		}
	}
}

func TestAnswers(t *testing.T) {
	folder := t.TempDir()
	mute := filepath.Join(folder, "mute.sock")
	listener, err := net.Listen("unix", mute)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	defer func() { _ = listener.Close() }()

	cases := map[string]struct {
		path string
		want bool
	}{
		"a runtime":           {path: critest.New(t, critest.Streamed).Socket(), want: true},
		"no socket":           {path: filepath.Join(folder, "none.sock")},
		"a socket of no one":  {path: mute},
		"a server of no CRI":  {path: serveNothing(t)},
		"no path of a socket": {path: "cri.sock"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Answers(t.Context())(tc.path); got != tc.want {
				t.Errorf("Answers(%s) = %t, want %t", tc.path, got, tc.want)
			}
		})
	}
}
