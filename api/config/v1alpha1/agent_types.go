// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AgentConfiguration configures seamark-agent. One file serves all nodes: the name of the
// node is no part of it.
//
// +kubebuilder:object:root=true
type AgentConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// criEndpoint is the socket of the container runtime, unix:///path or /path. Default
	// empty: that of containerd, CRI-O, k3s or cri-dockerd, whichever answers first.
	// +optional
	CRIEndpoint string `json:"criEndpoint,omitempty"`
	// execConcurrency is how many exec probes run at a time on the node, 1 to 1024.
	// Default 16. Others wait in line; network probes are not limited.
	// +optional
	ExecConcurrency int32 `json:"execConcurrency,omitempty"`
	// reportInterval is the least time between two writes of the node's report, 100ms to
	// 1m. Default 100ms. The first news after a pause is written at once, whatever it is.
	// +optional
	ReportInterval metav1.Duration `json:"reportInterval,omitempty"`
	// metrics is where /metrics, /healthz and /readyz are served, on the network of the
	// host. Default ":10357".
	// +optional
	Metrics Endpoint `json:"metrics,omitempty"`
	// pprof is where the profiles of net/http/pprof are served: a loopback address alone,
	// like 127.0.0.1:6060. Default "0".
	// +optional
	Pprof Endpoint `json:"pprof,omitempty"`
	// logging is what is logged, and how.
	// +optional
	Logging Logging `json:"logging,omitempty"`
}
