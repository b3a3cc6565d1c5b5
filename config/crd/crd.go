// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd embeds the CustomResourceDefinitions, for programs that validate objects
// without an API server.
package crd

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed bases/apps.kruise.io_podprobemarkers.yaml
var podProbeMarkers []byte

//go:embed bases/apps.kruise.io_nodepodprobes.yaml
var nodePodProbes []byte

//go:embed bases/seamark.dev_probeplans.yaml
var probePlans []byte

//go:embed bases/seamark.dev_probereports.yaml
var probeReports []byte

//go:embed workloads/apps.kruise.io_clonesets.yaml
var cloneSets []byte

//go:embed workloads/apps.kruise.io_statefulsets.yaml
var statefulSets []byte

//go:embed sidecarsets/apps.kruise.io_sidecarsets.yaml
var sidecarSets []byte

//go:embed cronjobs/apps.kruise.io_advancedcronjobs.yaml
var advancedCronJobs []byte

//go:embed daemonsets/apps.kruise.io_daemonsets.yaml
var daemonSets []byte

//go:embed broadcastjobs/apps.kruise.io_broadcastjobs.yaml
var broadcastJobs []byte

//go:embed imagepulls/apps.kruise.io_imagepulljobs.yaml
var imagePullJobs []byte

// PodProbeMarkers returns the CustomResourceDefinition of PodProbeMarkers, as YAML.
func PodProbeMarkers() []byte { return podProbeMarkers }

// NodePodProbes returns the CustomResourceDefinition of NodePodProbes, as YAML.
func NodePodProbes() []byte { return nodePodProbes }

// ProbePlans returns the CustomResourceDefinition of ProbePlans, as YAML.
func ProbePlans() []byte { return probePlans }

// ProbeReports returns the CustomResourceDefinition of ProbeReports, as YAML.
func ProbeReports() []byte { return probeReports }

// CloneSets returns the CustomResourceDefinition of CloneSets, as YAML.
func CloneSets() []byte { return cloneSets }

// StatefulSets returns the CustomResourceDefinition of StatefulSets of apps.kruise.io, as YAML.
func StatefulSets() []byte { return statefulSets }

// SidecarSets returns the CustomResourceDefinition of SidecarSets, as YAML.
func SidecarSets() []byte { return sidecarSets }

// AdvancedCronJobs returns the CustomResourceDefinition of AdvancedCronJobs, as YAML.
func AdvancedCronJobs() []byte { return advancedCronJobs }

// DaemonSets returns the CustomResourceDefinition of DaemonSets of apps.kruise.io, as YAML.
func DaemonSets() []byte { return daemonSets }

// BroadcastJobs returns the CustomResourceDefinition of BroadcastJobs, as YAML.
func BroadcastJobs() []byte { return broadcastJobs }

// ImagePullJobs returns the CustomResourceDefinition of ImagePullJobs, as YAML.
func ImagePullJobs() []byte { return imagePullJobs }
