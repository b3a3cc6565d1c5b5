// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity defines the identity of probes: the marker and probe, and the pod and
// container that is probed. It contains the only codec of the wire form marker#probe.
package identity

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// separator separates the two names in the wire form. Neither contains it: marker names
// are DNS subdomains, and the CRD rejects probe names with a "#".
const separator = "#"

// ID identifies one probe of one marker within a namespace.
type ID struct {
	// Marker is the name of the PodProbeMarker.
	Marker string
	// Probe is the name of the probe within it.
	Probe string
}

// String returns the wire form, marker#probe.
func (id ID) String() string { return id.Marker + separator + id.Probe }

// Parse parses the wire form. It returns an error unless s consists of two non-empty names
// separated by exactly one "#".
func Parse(s string) (ID, error) {
	marker, probe, found := strings.Cut(s, separator)
	if !found || marker == "" || probe == "" || strings.Contains(probe, separator) {
		return ID{}, fmt.Errorf("probe name: %q is invalid: must be marker%sprobe", s, separator)
	}
	return ID{Marker: marker, Probe: probe}, nil
}

// ParseSelection parses what selects probes: MARKER for all probes of a marker, which returns no
// probe, or MARKER#PROBE for one of them. The empty string selects all probes of all markers.
func ParseSelection(s string) (ID, error) {
	if !strings.ContainsAny(s, separator+"/") {
		return ID{Marker: s}, nil
	}
	id, err := Parse(s)
	if err != nil {
		return ID{}, fmt.Errorf("%q is invalid: must be MARKER or MARKER%sPROBE", s, separator)
	}
	return id, nil
}

// SamePlan reports whether a state that was reported with one plan value applies to a probe
// that is planned with the other. An empty value matches every other, because OpenKruise does not
// set it, and its CRD does not store it.
func SamePlan(a, b string) bool { return a == b || a == "" || b == "" }

// ContainerKey identifies one container of one pod. It does not change when the container
// restarts.
type ContainerKey struct {
	// PodUID is the pod's UID.
	PodUID types.UID
	// Name is the container's name in the pod's spec.
	Name string
}

// Key identifies one probe of one container. Results are stored by key, because a container
// can have several probes.
type Key struct {
	ContainerKey
	ID
}

// KeyOf returns the key of a planned probe of a planned pod. It returns an error if the
// probe's name is not marker#probe.
func KeyOf(pod *v1alpha1.PodProbe, planned *v1alpha1.ContainerProbe) (Key, error) {
	id, err := Parse(planned.Name)
	if err != nil {
		return Key{}, err
	}
	return Key{ContainerKey: ContainerKey{PodUID: types.UID(pod.UID), Name: planned.ContainerName}, ID: id}, nil
}
