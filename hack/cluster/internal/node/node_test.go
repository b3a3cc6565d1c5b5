// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	proxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/pki"
)

func newNode(t *testing.T, dir layout.Dir, number int, kind Runtime) Node {
	t.Helper()
	plan, err := address.NewNode(number)
	if err != nil {
		t.Fatal(err)
	}
	return Node{
		Dir: dir, Plan: plan, Runtime: kind, Snapshotter: "overlayfs",
		CgroupRoot: "/seamark/nodes/" + plan.Name, AuthorityCert: dir.Cert("ca"),
	}
}

// file renders a file of a node.
func file(t *testing.T, n Node, path string) []byte {
	t.Helper()
	files, err := n.Files()
	if err != nil {
		t.Fatal(err)
	}
	text, ok := files[path]
	if !ok {
		t.Fatalf("no %s", path)
	}
	return text
}

func TestKubeletConfig(t *testing.T) {
	n := newNode(t, "/c", 2, RuntimeContainerd)
	var config kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(file(t, n, "/c/nodes/node-2/config/kubelet.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"address":      config.Address,
		"cgroup root":  config.CgroupRoot,
		"driver":       config.CgroupDriver,
		"fail on v1":   *config.FailCgroupV1,
		"runtime":      config.ContainerRuntimeEndpoint,
		"anonymous":    *config.Authentication.Anonymous.Enabled,
		"disk":         config.EvictionHard["nodefs.available"],
		"image":        config.EvictionHard["imagefs.available"],
		"status every": config.NodeStatusUpdateFrequency.Duration,
		"restart":      config.CrashLoopBackOff.MaxContainerRestartPeriod.Duration,
	}
	want := map[string]any{
		"address": "10.231.0.102", "cgroup root": "/seamark/nodes/node-2", "driver": "cgroupfs", "fail on v1": false,
		"runtime": "unix:///c/nodes/node-2/containerd.sock", "anonymous": false, "disk": "0%", "image": "0%",
		"status every": 4 * time.Second, "restart": 5 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProxyConfig(t *testing.T) {
	n := newNode(t, "/c", 1, RuntimeContainerd)
	var config proxyv1alpha1.KubeProxyConfiguration
	if err := yaml.UnmarshalStrict(file(t, n, "/c/nodes/node-1/config/kube-proxy.yaml"), &config); err != nil {
		t.Fatal(err)
	}
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
			if err := toml.Unmarshal(file(t, n, "/c/nodes/node-1/config/containerd.toml"), &config); err != nil {
				t.Fatal(err)
			}
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

func TestNetworkConfig(t *testing.T) {
	n := newNode(t, "/c", 3, RuntimeContainerd)
	var config struct {
		Plugins []struct {
			Type string `json:"type"`
			IPAM struct {
				Ranges [][]struct {
					Subnet string `json:"subnet"`
				} `json:"ranges"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal(file(t, n, "/c/nodes/node-3/cni/10-seamark.conflist"), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Plugins) != 2 || config.Plugins[0].IPAM.Ranges[0][0].Subnet != "10.232.3.0/24" {
		t.Errorf("%+v", config)
	}
}

// TestNodesShareNothing checks that the configuration of a node contains no path or name of another node.
func TestNodesShareNothing(t *testing.T) {
	one, two := newNode(t, "/c", 1, RuntimeContainerd), newNode(t, "/c", 2, RuntimeContainerd)
	files, err := one.Files()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for path, content := range files {
		text += path + "\n" + string(content) + "\n"
	}
	for _, spec := range []any{one.Containerd(), one.Kubelet(), one.Proxy()} {
		encoded, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		text += string(encoded)
	}
	for _, foreign := range []string{two.Plan.Name, two.Plan.IP.String(), two.Plan.NetNS, two.Plan.Pods.String()} {
		if strings.Contains(text, foreign) {
			t.Errorf("the configuration of node-1 contains %s", foreign)
		}
	}
}

func TestRuntimeDecidesPrograms(t *testing.T) {
	tests := map[Runtime]struct{ path, client, search string }{
		RuntimeContainerd:   {"/c/bin/containerd", "/c/bin/ctr", "PATH=/c/bin:"},
		RuntimeDebian:       {"/c/bin/debian/containerd", "/c/bin/debian/ctr", "PATH=/c/bin/debian:"},
		RuntimeContainerd17: {"/c/bin/containerd-1.7/containerd", "/c/bin/containerd-1.7/ctr", "PATH=/c/bin/containerd-1.7:"},
	}
	for kind, want := range tests {
		n := newNode(t, "/c", 1, kind)
		spec := n.Containerd()
		if spec.Path != want.path || n.Client() != want.client || !strings.HasPrefix(spec.Env[0], want.search) {
			t.Errorf("%s: %s, %s, %s", kind, spec.Path, n.Client(), spec.Env[0])
		}
		if other := n.Kubelet(); strings.Contains(other.Env[0], "/c/bin") {
			t.Errorf("the kubelet has the PATH of containerd: %s", other.Env[0])
		}
	}
}

func TestIdentityIsTheNodes(t *testing.T) {
	dir := layout.Dir(t.TempDir())
	store, err := pki.NewStore(dir.PKIDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := newNode(t, dir, 2, RuntimeContainerd).Identities(store); err != nil {
		t.Fatal(err)
	}
	ca, err := store.Authority("ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := store.Pair("kubelet-node-2", ca, pki.Subject{CommonName: "already issued"})
	if err != nil {
		t.Fatal(err)
	}
	subject := pair.Cert.Subject
	if subject.CommonName != "system:node:node-2" || len(subject.Organization) != 1 || subject.Organization[0] != "system:nodes" {
		t.Errorf("subject %s", subject)
	}
	if err := pair.Cert.VerifyHostname("10.231.0.102"); err != nil {
		t.Error(err)
	}
}
