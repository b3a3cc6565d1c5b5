// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// ManagerConfiguration configures seamark-manager.
//
// +kubebuilder:object:root=true
// +kubebuilder:object:generate=false
type ManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// leaderElection configures how one of several managers becomes the leader.
	// +optional
	LeaderElection LeaderElection `json:"leaderElection,omitempty"`
	// metrics is the address that serves /metrics. Default ":8080".
	// +optional
	Metrics Endpoint `json:"metrics,omitempty"`
	// health is the address that serves /healthz and /readyz. Default ":8081".
	// +optional
	Health Endpoint `json:"health,omitempty"`
	// pprof is the address that serves the profiles of net/http/pprof. It must be a loopback
	// address such as 127.0.0.1:6060, or "0". Default "0".
	// +optional
	Pprof Endpoint `json:"pprof,omitempty"`
	// logging configures the log.
	// +optional
	Logging Logging `json:"logging,omitempty"`
	// controllers configures the concurrency of the controllers.
	// +optional
	Controllers Controllers `json:"controllers,omitempty"`
	// probeDefaults are the values of probe fields that a marker leaves unset.
	// +optional
	ProbeDefaults ProbeDefaults `json:"probeDefaults,omitempty"`
	// messageUpdates is how messages of probes that change while the state stays the same are
	// reported, Limited or Immediate. Markers override it with the annotation
	// seamark.dev/message-updates. OpenKruise reports all at once. Default "Limited".
	// +optional
	MessageUpdates appsv1alpha1.MessageUpdates `json:"messageUpdates,omitempty"`
	// excludedNamespaces are namespaces whose pods the manager does not probe: markers in them have
	// no effect. The admission policies seamark-manager-plans and seamark-manager-pods have the same
	// list. Default ["kube-system"].
	// +optional
	ExcludedNamespaces []string `json:"excludedNamespaces,omitempty"`
	// featureGates enables and disables features by name. Gates that are not listed keep
	// their defaults: PodProbeMarkerGate true, EnablePodProbeMarkerOnServerless false.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// serverless configures support for pods on virtual nodes. It requires the feature gate
	// EnablePodProbeMarkerOnServerless.
	// +optional
	Serverless Serverless `json:"serverless,omitempty"`
	// grants configures in which namespaces the manager lets seamark-workloads write pods.
	// +optional
	Grants Grants `json:"grants,omitempty"`
}

// Grants configures in which namespaces the manager lets seamark-workloads write pods.
type Grants struct {
	// resources are the sets of seamark-workloads: clonesets, statefulsets, daemonsets, broadcastjobs,
	// imagepulljobs and sidecarsets. The manager creates a RoleBinding in each namespace that has
	// some, or that a SidecarSet selects. If it is empty, the manager creates none.
	// +optional
	Resources []string `json:"resources,omitempty"`
}

// GrantResources returns what Grants.Resources may contain.
func GrantResources() []string {
	return []string{"clonesets", "statefulsets", "daemonsets", "broadcastjobs", "imagepulljobs", "sidecarsets"}
}

// LeaderElection configures how one of several managers becomes the leader.
type LeaderElection struct {
	// leaderElect makes the manager wait until it is the leader. If it is false, only one
	// manager may run. Default true.
	// +optional
	LeaderElect *bool `json:"leaderElect,omitempty"`
	// resourceNamespace is the namespace of the lease. If it is empty, it is the namespace
	// of the manager's pod, or seamark-system outside a pod.
	// +optional
	ResourceNamespace string `json:"resourceNamespace,omitempty"`
}

// Controllers configures each controller.
type Controllers struct {
	// nodeProbe compiles and writes the plans of nodes. Default 16.
	// +optional
	NodeProbe Controller `json:"nodeProbe,omitempty"`
	// podMark marks pods. Default 32.
	// +optional
	PodMark Controller `json:"podMark,omitempty"`
	// marker maintains the status and finalizer of markers. Default 4.
	// +optional
	Marker Controller `json:"marker,omitempty"`
	// serverless annotates the pods of virtual nodes. Default 16.
	// +optional
	Serverless Controller `json:"serverless,omitempty"`
}

// Controller configures a controller.
type Controller struct {
	// concurrency is the number of objects that the controller processes at the same time, 1
	// to 256.
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
}

// ProbeDefaults are the values of probe fields that a marker leaves unset. The defaults are
// those of Kubernetes. OpenKruise 1.9 uses 1 for each of them.
type ProbeDefaults struct {
	// initialDelaySeconds is the time from the start of a container to the first run of the
	// probe, in seconds, at least 0. Default 0.
	// +optional
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	// periodSeconds is the time from the start of one run to the start of the next, in
	// seconds, at least 1. Default 10.
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// timeoutSeconds is the timeout of one run, in seconds, 1 to 300. Default 1.
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// successThreshold is the number of consecutive successes after which the state becomes
	// Succeeded, at least 1. Default 1.
	// +optional
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
	// failureThreshold is the number of consecutive failures after which the state becomes
	// Failed, at least 1. Default 3.
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
}

// Serverless configures support for pods on virtual nodes.
type Serverless struct {
	// webhook configures the admission webhook that annotates pods when they are created.
	// +optional
	Webhook Webhook `json:"webhook,omitempty"`
}

// CertificateSource is what issues and renews the webhook's certificates.
// +kubebuilder:validation:Enum=seamark;certManager
type CertificateSource string

const (
	// CertificatesBySeamark means that the manager issues and renews the certificates, and
	// stores them in a Secret.
	CertificatesBySeamark CertificateSource = "seamark"
	// CertificatesByCertManager means that cert-manager issues and renews the certificates.
	CertificatesByCertManager CertificateSource = "certManager"
)

// Webhook configures the admission webhook that annotates pods when they are created. The
// Secret and Service are in the manager's own namespace; the webhook configuration is
// cluster-scoped.
type Webhook struct {
	// port is the port that the webhook listens on, 1 to 65535. Default 9443.
	// +optional
	Port int32 `json:"port,omitempty"`
	// certificates is what issues and renews the certificates, seamark or certManager.
	// Default "seamark".
	// +optional
	Certificates CertificateSource `json:"certificates,omitempty"`
	// certificateDirectory is the absolute path of the directory where the Secret is
	// mounted, with tls.crt and tls.key. It is used with certManager. Default
	// "/run/seamark/webhook".
	// +optional
	CertificateDirectory string `json:"certificateDirectory,omitempty"`
	// clientCAFile is a file with the authorities of the client certificates of API servers, in PEM format. It
	// must be an absolute path. Requests without such a certificate are refused. Empty means that certificates are
	// not checked.
	// +optional
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// secretName is the name of the Secret that stores the certificates. Default
	// "seamark-webhook".
	// +optional
	SecretName string `json:"secretName,omitempty"`
	// serviceName is the name of the Service through which the API server reaches the
	// webhook. Default "seamark-webhook".
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// configurationName is the name of the MutatingWebhookConfiguration that calls the
	// webhook. Default "seamark-webhook".
	// +optional
	ConfigurationName string `json:"configurationName,omitempty"`
}
