// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probeid gives probes their identity: which probe of which marker, and in
// which container of which pod. It holds the only codec of the wire form marker#probe.
package probeid

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// separator stands between the two names on the wire. Marker names are DNS subdomains
// and probe names are refused with a "#" by the CRD, so a name has exactly one.
const separator = "#"

// ID names one probe of one marker within a namespace.
type ID struct {
	// Marker is the name of the PodProbeMarker.
	Marker string
	// Probe is the name of the probe within it.
	Probe string
}

// String returns the wire form, marker#probe.
func (id ID) String() string { return id.Marker + separator + id.Probe }

// Parse reads the wire form. It returns an error unless s is two non-empty names
// around exactly one "#".
func Parse(s string) (ID, error) {
	marker, probe, found := strings.Cut(s, separator)
	if !found || marker == "" || probe == "" || strings.Contains(probe, separator) {
		return ID{}, fmt.Errorf("probe name %q: want marker%sprobe", s, separator)
	}
	return ID{Marker: marker, Probe: probe}, nil
}

// ContainerKey names one container of one pod for as long as the pod lives. A restarted
// container keeps it.
type ContainerKey struct {
	// PodUID is the pod's UID.
	PodUID types.UID
	// Name is the container's name in the pod's spec.
	Name string
}

// Key names one probe of one container. Results are kept by it, never by container
// alone.
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
