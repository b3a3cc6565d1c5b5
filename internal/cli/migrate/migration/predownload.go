// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"strings"

	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// preDownloadPrefix begins the annotations about pulls before updates.
const preDownloadPrefix = "apps.kruise.io/image-predownload-"

// preDownloads returns what a take-over changes if OpenKruise pulls images before it updates the set. If its gates are not
// known, the annotations say that it does.
func (s *set) preDownloads(m *Manager) []Finding {
	gate, pulls := GatePreDownload, s.inPlace
	if s.daemon != nil {
		gate, pulls = GatePreDownloadDaemonSets, true
	}
	if !pulls || m == nil && !s.hasPreDownload() || m != nil && !m.has(gate) {
		return nil
	}
	does := "pulls new images before it updates pods"
	if s.daemon != nil && onDelete(s.daemon) {
		does = "stops its manager by a panic because of the type OnDelete"
	}
	field := "spec.template.spec.containers.image"
	action := fmt.Sprintf("install Seamark with workloads.config.featureGates.%s=true and imagepulljob in workloads.controllers", gate)
	if m == nil {
		field, action = "metadata.annotations "+preDownloadPrefix+"*", "if the gate of OpenKruise is on, "+action
	}
	found := []Finding{s.finding(Changes, field, does+" while the gate "+gate+" is on",
		"pulls new images before it updates pods if its gate of the same name is on, which is off by default", action)}
	if err := step.CheckAnnotations(s.object.GetAnnotations()); err != nil {
		found = append(found, s.finding(Changes, err.Field, "uses the default instead of an invalid value",
			"pulls nothing: "+err.ErrorBody(), "correct the annotation"))
	}
	return found
}

func (s *set) hasPreDownload() bool {
	for key := range s.object.GetAnnotations() {
		if strings.HasPrefix(key, preDownloadPrefix) {
			return true
		}
	}
	return false
}
