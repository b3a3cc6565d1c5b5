// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ManagerConfiguration configures seamark-manager.
//
// +kubebuilder:object:root=true
type ManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// leaderElection is how one of several managers is chosen to work.
	// +optional
	LeaderElection LeaderElection `json:"leaderElection,omitempty"`
	// metrics is where /metrics is served. Default ":8080".
	// +optional
	Metrics Endpoint `json:"metrics,omitempty"`
	// health is where /healthz and /readyz are served. Default ":8081".
	// +optional
	Health Endpoint `json:"health,omitempty"`
	// pprof is where the profiles of net/http/pprof are served: a loopback address alone,
	// like 127.0.0.1:6060. Default "0".
	// +optional
	Pprof Endpoint `json:"pprof,omitempty"`
	// logging is what is logged, and how.
	// +optional
	Logging Logging `json:"logging,omitempty"`
	// controllers is how much the controllers do at a time.
	// +optional
	Controllers Controllers `json:"controllers,omitempty"`
	// probeDefaults are for the fields of probes that markers leave unset.
	// +optional
	ProbeDefaults ProbeDefaults `json:"probeDefaults,omitempty"`
	// featureGates switch features on and off, by name. Those left out have their defaults:
	// PodProbeMarkerGate true, EnablePodProbeMarkerOnServerless false.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// serverless is how pods of virtual kubelets are served. It has no effect unless the
	// gate EnablePodProbeMarkerOnServerless is on.
	// +optional
	Serverless Serverless `json:"serverless,omitempty"`
}

// LeaderElection is how one of several managers is chosen to work.
type LeaderElection struct {
	// leaderElect is whether a manager waits to be elected before it works. Default true.
	// With false, only one manager may run.
	// +optional
	LeaderElect *bool `json:"leaderElect,omitempty"`
	// resourceNamespace is the namespace of the lease. Default: the manager's own, or
	// seamark-system where it runs in no pod.
	// +optional
	ResourceNamespace string `json:"resourceNamespace,omitempty"`
}

// Controllers is how much each controller does at a time.
type Controllers struct {
	// nodeProbe compiles and writes the plans of nodes. Default concurrency 16 nodes.
	// +optional
	NodeProbe Controller `json:"nodeProbe,omitempty"`
	// podMark marks pods. Default concurrency 32 pods.
	// +optional
	PodMark Controller `json:"podMark,omitempty"`
	// marker keeps the status and the finalizer of markers. Default concurrency 4 markers.
	// +optional
	Marker Controller `json:"marker,omitempty"`
	// serverless annotates the pods of virtual kubelets. Default concurrency 16 pods.
	// +optional
	Serverless Controller `json:"serverless,omitempty"`
}

// Controller is how much a controller does at a time.
type Controller struct {
	// concurrency is how many objects are worked on at once, 1 to 256.
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
}

// ProbeDefaults are the values of a probe's fields that a marker leaves unset. Those of
// this API are Kubernetes' own, where OpenKruise 1.9 runs each of them with 1.
type ProbeDefaults struct {
	// initialDelaySeconds is the time from the start of a container to the first run, in
	// seconds, at least 0. Default 0.
	// +optional
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	// periodSeconds is the time from the start of one run to that of the next, in seconds,
	// at least 1. Default 10.
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// timeoutSeconds is what one run may take, in seconds, at least 1. Default 1.
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// successThreshold is how many successes in a row count, at least 1. Default 1.
	// +optional
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
	// failureThreshold is how many failures in a row count, at least 1. Default 3.
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
}

// Serverless is how pods of virtual kubelets are served.
type Serverless struct {
	// webhook annotates pods as they are made.
	// +optional
	Webhook Webhook `json:"webhook,omitempty"`
}

// CertificateSource is who makes and renews the certificates of the webhook.
// +kubebuilder:validation:Enum=seamark;certManager
type CertificateSource string

const (
	// CertificatesBySeamark are made and renewed by the manager, in a Secret of its own.
	CertificatesBySeamark CertificateSource = "seamark"
	// CertificatesByCertManager are made and renewed by cert-manager.
	CertificatesByCertManager CertificateSource = "certManager"
)

// Webhook is the server that annotates pods as they are made. What it names is in the
// manager's own namespace, but for the webhook configuration, which is in none.
type Webhook struct {
	// port is the port that it listens on, 1 to 65535. Default 9443.
	// +optional
	Port int32 `json:"port,omitempty"`
	// certificates is who makes and renews its certificates, seamark or certManager.
	// Default seamark.
	// +optional
	Certificates CertificateSource `json:"certificates,omitempty"`
	// certificateDirectory is where the Secret is mounted, with tls.crt and tls.key: an
	// absolute path. Default /run/seamark/webhook.
	// +optional
	CertificateDirectory string `json:"certificateDirectory,omitempty"`
	// secretName is the Secret of the certificates. Default seamark-webhook.
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// serviceName is the Service by which the API server reaches it. Default
	// seamark-webhook.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// configurationName is the MutatingWebhookConfiguration that calls it. Default
	// seamark-webhook.
	// +optional
	ConfigurationName string `json:"configurationName,omitempty"`
}
