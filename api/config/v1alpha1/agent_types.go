// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AgentConfiguration configures seamark-agent. All nodes share one file, so the name of the
// node is not part of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:object:generate=false
type AgentConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// criEndpoint is the socket of the container runtime, unix:///path or /path. If it is
	// empty, the agent uses the first of containerd, CRI-O, k3s and cri-dockerd that responds.
	// +optional
	CRIEndpoint string `json:"criEndpoint,omitempty"`
	// execConcurrency is the number of exec probes that run at the same time on the node, 1
	// to 1024. Further exec probes wait. Network probes have 256 slots of their own. Default 16.
	// +optional
	ExecConcurrency int32 `json:"execConcurrency,omitempty"`
	// probeRate is the number of TCP probes that may run per second on the node, 100 to 100000. An HTTP
	// request and a command count as 2 of them, a gRPC call as 4, and a probe with TLS as 8. Namespaces
	// share the rate fairly, and a pod may use an eighth of it. Probes that exceed it run later. Default
	// 2400.
	// +optional
	ProbeRate int32 `json:"probeRate,omitempty"`
	// reportInterval is the minimum time between two batches of writes of the node's report,
	// 100ms to 1m. The first change after a pause is written immediately. Default 100ms.
	// +optional
	ReportInterval metav1.Duration `json:"reportInterval,omitempty"`
	// metrics is the address that serves /metrics, /healthz and /readyz, on the host
	// network. Default ":18357".
	// +optional
	Metrics Endpoint `json:"metrics,omitempty"`
	// pprof is the address that serves the profiles of net/http/pprof. It must be a loopback
	// address such as 127.0.0.1:6060, or "0". Default "0".
	// +optional
	Pprof Endpoint `json:"pprof,omitempty"`
	// logging configures the log.
	// +optional
	Logging Logging `json:"logging,omitempty"`
}
