// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The feature gates, with the names that OpenKruise uses.
const (
	// PodProbeMarkerGate enables the controllers. Default true.
	PodProbeMarkerGate = "PodProbeMarkerGate"
	// ServerlessGate enables support for pods on virtual nodes. Default false.
	ServerlessGate = "EnablePodProbeMarkerOnServerless"
	// RecreateForClaimsGate makes updates of CloneSets recreate pods whose claims have changed. Default
	// false.
	RecreateForClaimsGate = "RecreatePodWhenChangeVCTInCloneSetGate"
	// SidecarSetMetadataGate lets SidecarSets for which the white list has no expressions set all annotations of pods.
	// Default false.
	SidecarSetMetadataGate = "SidecarSetPatchPodMetadataDefaultsAllowed"
	// PreDownloadDaemonSetGate and PreDownloadInPlaceGate pull the images of an update before it: for DaemonSets, and for
	// updates in place of CloneSets and StatefulSets. They require the controller of ImagePullJobs. Default false.
	PreDownloadDaemonSetGate = "PreDownloadImageForDaemonSetUpdate"
	PreDownloadInPlaceGate   = "PreDownloadImageForInPlaceUpdate"
)

// Gates that set the gates of a stage that are not set by name.
const (
	allAlpha = "AllAlpha"
	allBeta  = "AllBeta"
)

type gate struct {
	name string
	on   bool
	// stage is the gate that sets this one if it is not set by name.
	stage string
}

// gates are the feature gates of a program. The package featuregate of Kubernetes would link the
// metrics and traces of Kubernetes into every program.
type gates []gate

func managerGates() gates {
	return gates{
		{name: PodProbeMarkerGate, on: true, stage: allBeta},
		{name: ServerlessGate, on: false, stage: allAlpha},
	}
}

func workloadGates() gates {
	return gates{
		{name: RecreateForClaimsGate, on: false, stage: allAlpha},
		{name: SidecarSetMetadataGate, on: false, stage: allAlpha},
		{name: PreDownloadDaemonSetGate, on: false, stage: allAlpha},
		{name: PreDownloadInPlaceGate, on: false, stage: allAlpha},
	}
}

// names returns the names of all gates that can be set, sorted.
func (all gates) names() []string {
	names := []string{allAlpha, allBeta}
	for _, g := range all {
		names = append(names, g.name)
	}
	slices.Sort(names)
	return names
}

// effective returns the given gates and the resulting values of the program's gates. It keeps
// unknown gates, which validation rejects.
func (all gates) effective(given map[string]bool) map[string]bool {
	values := map[string]bool{}
	for _, g := range all {
		values[g.name] = g.on
		if on, set := given[g.stage]; set {
			values[g.name] = on
		}
	}
	maps.Copy(values, given)
	return values
}

// bind defines the flag that sets the gates.
func (all gates) bind(f flags, into *map[string]bool) {
	f.set.Var(gatesFlag{into, all}, "feature-gates", "feature gates, as A=true,B=false; the gates are "+strings.Join(all.names(), ", "))
	f.remember("feature-gates", "featureGates")
}

// gates adds the gates that the program does not have.
func (p *problems) gates(given map[string]bool, all gates) {
	for name := range given {
		oneOf(p, field.NewPath("featureGates").Key(name), name, all.names()...)
	}
}

// gatesFlag is the value of a flag that sets the gates it names and keeps the others.
type gatesFlag struct {
	gates *map[string]bool
	all   gates
}

// Set parses pairs such as A=true,B=false.
func (f gatesFlag) Set(text string) error {
	given := map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if name == "" {
			continue
		}
		if !slices.Contains(f.all.names(), name) {
			return fmt.Errorf("unknown feature gate %q: must be one of %s", name, strings.Join(f.all.names(), ", "))
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%s=%q: must be true or false", name, value)
		}
		given[name] = on
	}
	if *f.gates == nil {
		*f.gates = map[string]bool{}
	}
	maps.Copy(*f.gates, given)
	return nil
}

// Type returns the name of the value in the help.
func (f gatesFlag) Type() string { return "gates" }

// String returns the gates in the format that Set parses.
func (f gatesFlag) String() string {
	if f.gates == nil {
		return ""
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(*f.gates)) {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, (*f.gates)[name]))
	}
	return strings.Join(pairs, ",")
}
