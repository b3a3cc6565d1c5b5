// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkloadsConfiguration configures seamark-workloads.
//
// +kubebuilder:object:root=true
// +kubebuilder:object:generate=false
type WorkloadsConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// leaderElection configures how one of several replicas becomes the leader.
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
	// controllers configures which controllers run, at least one.
	// +optional
	Controllers WorkloadControllers `json:"controllers,omitempty"`
	// featureGates enables and disables features by name. Gates that are not listed keep their
	// defaults: PreDownloadImageForDaemonSetUpdate, PreDownloadImageForInPlaceUpdate,
	// RecreatePodWhenChangeVCTInCloneSetGate and SidecarSetPatchPodMetadataDefaultsAllowed, all false.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// excludedNamespaces are namespaces whose pods no SidecarSet selects, in addition to kube-system and the namespace of
	// the program. The policies of the program must have the same list, with which they refuse its writes of pods. Default
	// ["kube-system"].
	// +optional
	ExcludedNamespaces []string `json:"excludedNamespaces,omitempty"`
	// imagePull limits the pulls of ImagePullJobs.
	// +optional
	ImagePull ImagePull `json:"imagePull,omitempty"`
	// injector configures the program's command injector, which injects the containers of SidecarSets.
	// +optional
	Injector Injector `json:"injector,omitempty"`
	// openKruise describes an installation of OpenKruise in the cluster. While its manager runs, the
	// controllers do not.
	// +optional
	OpenKruise OpenKruise `json:"openKruise,omitempty"`
}

// Injector configures the server that the API server calls when a pod is created that a SidecarSet selects.
type Injector struct {
	// port is the port that it listens on, 1 to 65535. Default 9443.
	// +optional
	Port int32 `json:"port,omitempty"`
	// certificates is what issues and renews the certificates, seamark or certManager. Default
	// "seamark".
	// +optional
	Certificates CertificateSource `json:"certificates,omitempty"`
	// certificateDirectory contains tls.crt, tls.key and ca.crt if certificates is certManager. It
	// must be an absolute path. Default "/run/seamark/injector".
	// +optional
	CertificateDirectory string `json:"certificateDirectory,omitempty"`
	// clientCAFile is a file with the authorities of the client certificates of API servers, in PEM format. It
	// must be an absolute path. Requests without such a certificate are refused. Empty means that certificates are
	// not checked.
	// +optional
	ClientCAFile string `json:"clientCAFile,omitempty"`
	// url is where API servers reach the injectors if they do not run behind the Service
	// seamark-injector: https://host:port, without a path. The certificates have the host, a name or an IP address.
	// +optional
	URL string `json:"url,omitempty"`
}

// ImagePull limits the pulls of all ImagePullJobs.
type ImagePull struct {
	// perNode is the maximum number of pulls of a node at the same time, 1 to 100. If it is at least 2, each namespace leaves
	// one of them to others. Default 2.
	// +optional
	PerNode int32 `json:"perNode,omitempty"`
	// total is the maximum number of pulls in the cluster at the same time, 1 to 10000. Namespaces share it fairly, and each
	// leaves a tenth to others. Default 100.
	// +optional
	Total int32 `json:"total,omitempty"`
	// nodeSelector selects the nodes on which jobs may pull, by labels. Default: nodes without the label
	// node-role.kubernetes.io/control-plane.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`
}

// OpenKruise describes an installation of OpenKruise in the cluster.
type OpenKruise struct {
	// namespace is the namespace in which OpenKruise's manager renews its lease, which is named
	// kruise-manager. Default "kruise-system".
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadControllers configures the controller of each kind of workload.
type WorkloadControllers struct {
	// cloneSet runs CloneSets. Default true.
	// +optional
	CloneSet WorkloadController `json:"cloneSet,omitempty"`
	// statefulSet runs StatefulSets of group apps.kruise.io. Default true.
	// +optional
	StatefulSet WorkloadController `json:"statefulSet,omitempty"`
	// advancedCronJob runs AdvancedCronJobs. Default false.
	// +optional
	AdvancedCronJob WorkloadController `json:"advancedCronJob,omitempty"`
	// daemonSet runs DaemonSets of group apps.kruise.io. Default false.
	// +optional
	DaemonSet WorkloadController `json:"daemonSet,omitempty"`
	// broadcastJob runs BroadcastJobs. Default false.
	// +optional
	BroadcastJob WorkloadController `json:"broadcastJob,omitempty"`
	// imagePullJob runs ImagePullJobs. Default false.
	// +optional
	ImagePullJob WorkloadController `json:"imagePullJob,omitempty"`
	// sidecarSet runs SidecarSets, whose webhook entries need the injectors. Default false.
	// +optional
	SidecarSet WorkloadController `json:"sidecarSet,omitempty"`
}

// WorkloadController configures the controller of a kind of workload.
type WorkloadController struct {
	// enabled runs the controller. Its CRD must be installed.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// concurrency is the number of sets that the controller processes at the same time, 1 to
	// 256. Default 32.
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
}
