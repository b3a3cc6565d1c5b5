// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node configures the daemons of a node: containerd, the kubelet and kube-proxy.
//
// They run on the machine, in the network namespace of the node. Each has its own folders and cgroup, so that
// any number of nodes run on one machine.
package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	proxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
)

// SandboxImage is the image of the process that keeps the namespaces of a pod open.
const SandboxImage = "seamark.dev/pause:1"

// pluginDir is the folder of Debian's containernetworking-plugins.
const pluginDir = "/usr/lib/cni"

// runc is the path of Debian's runc.
const runc = "/usr/sbin/runc"

const containerd2 = `version = 3
root = "{{.Root}}"
state = "{{.State}}"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile"]

[grpc]
  address = "{{.Socket}}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{{.Snapshotter}}"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{{.Sandbox}}"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  enable_cdi = false
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
    BinaryName = "{{.RuncPath}}"
    Root = "{{.RuncRoot}}"
    SystemdCgroup = false
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{{.CNIBin}}"]
    conf_dir = "{{.CNIConf}}"
    max_conf_num = 1

[plugins."io.containerd.transfer.v1.local"]
  unpack_config = [{platform = "linux", snapshotter = "{{.Snapshotter}}"}]
`

const containerd1 = `version = 2
root = "{{.Root}}"
state = "{{.State}}"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper"]

[grpc]
  address = "{{.Socket}}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{{.Sandbox}}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{{.Snapshotter}}"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    BinaryName = "{{.RuncPath}}"
    Root = "{{.RuncRoot}}"
    SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{.CNIBin}}"
    conf_dir = "{{.CNIConf}}"
    max_conf_num = 1
`

// containerdConfig renders containerd's configuration, in the version that the runtime reads.
func containerdConfig(n Node) ([]byte, error) {
	text := containerd1
	if n.Runtime == RuntimeContainerd {
		text = containerd2
	}
	parsed, err := template.New("containerd").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse the containerd template: %w", err)
	}
	files := n.files()
	var out bytes.Buffer
	err = parsed.Execute(&out, map[string]string{
		"Root": files.Root(), "State": files.State(), "Socket": n.Dir.Short(files.Socket()),
		"Snapshotter": n.Snapshotter, "Sandbox": SandboxImage,
		"RuncPath": runc, "RuncRoot": files.Runc(), "CNIBin": pluginDir, "CNIConf": files.CNIConf(),
	})
	if err != nil {
		return nil, fmt.Errorf("render the containerd configuration: %w", err)
	}
	return out.Bytes(), nil
}

// networkConfig connects each pod by its own veth pair. There is no bridge in a node, so all traffic between
// pods passes its packet filter.
func networkConfig(n Node) ([]byte, error) {
	text, err := json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       n.Plan.NetNS,
		"plugins": []any{
			map[string]any{
				"type": "ptp",
				"ipam": map[string]any{
					"type":    "host-local",
					"dataDir": n.files().CNIData(),
					"ranges":  []any{[]any{map[string]any{"subnet": n.Plan.Pods.String()}}},
					"routes":  []any{map[string]any{"dst": "0.0.0.0/0"}},
				},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the CNI configuration: %w", err)
	}
	return text, nil
}

// kubeletConfig is for tests on one machine: it reports changes quickly and does not evict for lack of disk.
func kubeletConfig(n Node) ([]byte, error) {
	files := n.files()
	config := kubeletv1beta1.KubeletConfiguration{
		TypeMeta:                  metav1.TypeMeta{APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration"},
		Address:                   n.Plan.IP.String(),
		HealthzBindAddress:        n.Plan.IP.String(),
		TLSCertFile:               n.Dir.Cert(n.pair(KubeletName)),
		TLSPrivateKeyFile:         n.Dir.Key(n.pair(KubeletName)),
		ClusterDomain:             "cluster.local",
		ClusterDNS:                []string{address.DNSService().String()},
		ResolverConfig:            ptr.To(files.Config("resolv.conf")),
		ContainerRuntimeEndpoint:  "unix://" + n.Dir.Short(files.Socket()),
		PodLogsDir:                files.PodLogs(),
		VolumePluginDir:           files.Plugins(),
		CgroupDriver:              "cgroupfs",
		CgroupRoot:                n.CgroupRoot,
		FailCgroupV1:              ptr.To(false),
		FailSwapOn:                ptr.To(false),
		OOMScoreAdj:               ptr.To[int32](0),
		MaxPods:                   200,
		NodeStatusUpdateFrequency: seconds(4),
		SyncFrequency:             seconds(10),
		StaticPodPath:             files.StaticPods(),
		FileCheckFrequency:        seconds(1),
		SerializeImagePulls:       ptr.To(false),
		EventRecordQPS:            ptr.To[int32](0),
		ContainerLogMaxSize:       "2Mi",
		ContainerLogMaxFiles:      ptr.To[int32](2),
		// Tests end containers often. Before Kubernetes 1.35, the feature gate is disabled by default.
		CrashLoopBackOff: kubeletv1beta1.CrashLoopBackOffConfig{MaxContainerRestartPeriod: ptr.To(seconds(5))},
		FeatureGates:     map[string]bool{"KubeletCrashLoopBackOffMax": true},
		// Images come from files and cannot be pulled again. The disk is shared with the whole machine.
		ImageGCHighThresholdPercent: ptr.To[int32](100),
		ImageGCLowThresholdPercent:  ptr.To[int32](99),
		EvictionHard: map[string]string{
			"memory.available": "50Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
			"imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
	}
	config.Authentication.X509.ClientCAFile = n.AuthorityCert
	config.Authentication.Anonymous.Enabled = ptr.To(false)
	config.Authentication.Webhook.Enabled = ptr.To(true)
	config.Authorization.Mode = kubeletv1beta1.KubeletAuthorizationModeWebhook
	return encode(config)
}

// proxyConfig changes no settings of the machine, only those of the network namespace.
func proxyConfig(n Node) ([]byte, error) {
	config := proxyv1alpha1.KubeProxyConfiguration{
		TypeMeta:           metav1.TypeMeta{APIVersion: "kubeproxy.config.k8s.io/v1alpha1", Kind: "KubeProxyConfiguration"},
		HostnameOverride:   n.Plan.Name,
		BindAddress:        n.Plan.IP.String(),
		HealthzBindAddress: "127.0.0.1:10256",
		MetricsBindAddress: "127.0.0.1:10249",
		Mode:               "iptables",
		ClusterCIDR:        address.PodRange().String(),
		OOMScoreAdj:        ptr.To[int32](0),
		Conntrack: proxyv1alpha1.KubeProxyConntrackConfiguration{
			MaxPerCore:            ptr.To[int32](0),
			TCPEstablishedTimeout: ptr.To(seconds(0)),
			TCPCloseWaitTimeout:   ptr.To(seconds(0)),
		},
	}
	config.ClientConnection.Kubeconfig = n.files().Config("kube-proxy.kubeconfig")
	return encode(config)
}

func encode(config any) ([]byte, error) {
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return text, nil
}

func seconds(count int) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(count) * time.Second}
}

func (n Node) files() layout.Node { return n.Dir.Node(n.Plan.Name) }

// Runtime is a container runtime of nodes.
type Runtime string

const (
	// RuntimeContainerd is the containerd 2 that this program builds. It streams CRI container events to all
	// subscribers.
	RuntimeContainerd Runtime = "containerd"
	// RuntimeContainerd17 is the containerd 1.7 that this program builds. It streams each event to one subscriber.
	RuntimeContainerd17 Runtime = "containerd-1.7"
	// RuntimeDebian is Debian's containerd 1.6, which does not stream events.
	RuntimeDebian Runtime = "debian"
)

// folder returns the folder of the runtime's programs, relative to the folder of all programs.
func (r Runtime) folder() string {
	if r == RuntimeContainerd {
		return ""
	}
	return string(r)
}

// Runtimes are the container runtimes of the nodes of a cluster, in their order. If there are more nodes, they
// continue with the first runtime. There is at least one.
type Runtimes []Runtime

// ParseRuntimes returns the runtimes with the given names.
func ParseRuntimes(names []string) (Runtimes, error) {
	var runtimes Runtimes
	for _, name := range names {
		switch runtime := Runtime(name); runtime {
		case RuntimeContainerd, RuntimeContainerd17, RuntimeDebian:
			runtimes = append(runtimes, runtime)
		default:
			return nil, fmt.Errorf("runtime: %q is invalid: must be %s, %s or %s", name, RuntimeContainerd, RuntimeContainerd17, RuntimeDebian)
		}
	}
	return runtimes, nil
}

// Of returns the runtime of a node. The index of the first node is 0.
func (r Runtimes) Of(index int) Runtime { return r[index%len(r)] }

// Among reports whether one of the first nodes has a runtime.
func (r Runtimes) Among(nodes int, runtime Runtime) bool {
	return slices.Contains(r[:min(nodes, len(r))], runtime)
}
