// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/pelletier/go-toml/v2"
	proxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
)

func newNode(t *testing.T, dir layout.Dir, number int, kind Runtime) Node {
	t.Helper()
	plan, err := address.NewNode(number)
	expect.NoError(t, err)
	return Node{
		Dir: dir, Plan: plan, Runtime: kind, Snapshotter: "overlayfs",
		CgroupRoot: "/seamark/nodes/" + plan.Name, AuthorityCert: dir.Cert("ca"),
	}
}

func file(t *testing.T, n Node, path string) []byte {
	t.Helper()
	files, err := n.Files()
	expect.NoError(t, err)
	text, ok := files[path]
	if !ok {
		t.Fatalf("no %s", path)
	}
	return text
}

func TestProxyConfig(t *testing.T) {
	n := newNode(t, "/c", 1, RuntimeContainerd)
	var config proxyv1alpha1.KubeProxyConfiguration
	expect.NoError(t, yaml.UnmarshalStrict(file(t, n, "/c/nodes/node-1/config/kube-proxy.yaml"), &config))
	// The size of the connection tracking table is a setting of the machine.
	if *config.Conntrack.MaxPerCore != 0 || config.HostnameOverride != "node-1" || config.ClusterCIDR != "10.232.0.0/16" {
		t.Errorf("%+v", config)
	}
}

// at returns a value of nested maps.
func at(t *testing.T, tree map[string]any, keys ...string) any {
	t.Helper()
	var value any = tree
	for _, key := range keys {
		branch, ok := value.(map[string]any)
		if !ok {
			t.Fatalf("no key %q of %q", key, keys)
		}
		value = branch[key]
	}
	return value
}

func TestContainerdConfig(t *testing.T) {
	const one = "io.containerd.grpc.v1.cri"
	const images, runtime = "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
	tests := map[string]struct {
		kind    Runtime
		version int64
		values  map[any][]string
	}{
		"containerd 2": {kind: RuntimeContainerd, version: 3, values: map[any][]string{
			true:                              {"plugins", runtime, "restrict_oom_score_adj"},
			SandboxImage:                      {"plugins", images, "pinned_images", "sandbox"},
			"overlayfs":                       {"plugins", images, "snapshotter"},
			"/c/nodes/node-1/runc":            {"plugins", runtime, "containerd", "runtimes", "runc", "options", "Root"},
			"/c/nodes/node-1/cni":             {"plugins", runtime, "cni", "conf_dir"},
			"/c/nodes/node-1/state":           {"state"},
			"/c/nodes/node-1/containerd.sock": {"grpc", "address"},
		}},
		"containerd 1.7": {kind: RuntimeContainerd17, version: 2, values: map[any][]string{
			SandboxImage:                      {"plugins", one, "sandbox_image"},
			"/c/nodes/node-1/containerd.sock": {"grpc", "address"},
		}},
		"containerd 1.6": {kind: RuntimeDebian, version: 2, values: map[any][]string{
			true:                              {"plugins", one, "restrict_oom_score_adj"},
			SandboxImage:                      {"plugins", one, "sandbox_image"},
			"overlayfs":                       {"plugins", one, "containerd", "snapshotter"},
			"/c/nodes/node-1/runc":            {"plugins", one, "containerd", "runtimes", "runc", "options", "Root"},
			"/c/nodes/node-1/cni":             {"plugins", one, "cni", "conf_dir"},
			"/c/nodes/node-1/state":           {"state"},
			"/c/nodes/node-1/containerd.sock": {"grpc", "address"},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "/c", 1, test.kind)
			var config map[string]any
			expect.NoError(t, toml.Unmarshal(file(t, n, "/c/nodes/node-1/config/containerd.toml"), &config))
			if got := config["version"]; got != test.version {
				t.Errorf("version %v", got)
			}
			for want, keys := range test.values {
				if got := at(t, config, keys...); got != want {
					t.Errorf("%q = %v, want %v", keys, got, want)
				}
			}
		})
	}
}

func TestRuntimesOfNodes(t *testing.T) {
	cases := map[string]struct {
		names []string
		want  []Runtime
	}{
		"one":              {names: []string{"debian"}, want: []Runtime{RuntimeDebian, RuntimeDebian, RuntimeDebian}},
		"fewer than nodes": {names: []string{"debian", "containerd-1.7"}, want: []Runtime{RuntimeDebian, RuntimeContainerd17, RuntimeDebian}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runtimes, err := ParseRuntimes(tc.names)
			expect.NoError(t, err)
			var got []Runtime
			for i := range tc.want {
				got = append(got, runtimes.Of(i))
			}
			expect.Equal(t, "runtimes", tc.want, got)
		})
	}
	runtimes := Runtimes{RuntimeDebian, RuntimeContainerd17}
	if runtimes.Among(1, RuntimeContainerd17) || !runtimes.Among(2, RuntimeContainerd17) {
		t.Error("the runtime of the second node is among the first nodes only if there are two")
	}
}
