// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/internal/manifest/files"
)

const (
	// maxMarkers limits the markers of one run.
	maxMarkers = 20
	kind       = "PodProbeMarker"
)

// readFiles returns the selected markers of the files, in their order. It checks them as the API
// server does, so an invalid marker is rejected before anything runs.
func (o *Options) readFiles(ctx context.Context) ([]*v1alpha1.PodProbeMarker, error) {
	if len(o.Filenames) == 0 {
		return nil, nil
	}
	manifests, err := (&files.Loader{Stdin: o.In}).Load(ctx, o.Filenames)
	if err != nil {
		return nil, err
	}
	if err := check(ctx, manifests); err != nil {
		return nil, err
	}
	var markers []*v1alpha1.PodProbeMarker
	for _, file := range manifests {
		objects, err := file.Objects()
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			marker := &v1alpha1.PodProbeMarker{}
			if object.GetKind() != kind {
				continue
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, marker); err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name, err)
			}
			markers = append(markers, marker)
		}
	}
	if len(markers) == 0 {
		return nil, fmt.Errorf("%s: no PodProbeMarker", strings.Join(o.Filenames, ", "))
	}
	markers, err = o.selectMarkers(markers, " in "+strings.Join(o.Filenames, ", "))
	if err == nil && len(markers) > maxMarkers {
		err = fmt.Errorf("%s: %d PodProbeMarkers: must be at most %d; select one with -m", strings.Join(o.Filenames, ", "), len(markers), maxMarkers)
	}
	return markers, err
}

// check returns the errors of the markers. Other objects in the files do not matter.
func check(ctx context.Context, files []document.File) error {
	result := (&rules.Linter{}).Check(ctx, files)
	var errs []error
	for _, finding := range result.Findings {
		if finding.Severity != rules.Error || finding.Object != "" && !strings.HasPrefix(finding.Object, kind+" ") {
			continue
		}
		errs = append(errs, fmt.Errorf("%s: %s", finding.Place(), finding.Text()))
	}
	return errors.Join(errs...)
}

// selectMarkers returns the markers that the flag selects, with only the selected probe.
func (o *Options) selectMarkers(markers []*v1alpha1.PodProbeMarker, where string) ([]*v1alpha1.PodProbeMarker, error) {
	name, probe := o.selected.Marker, o.selected.Probe
	if name == "" {
		return markers, nil
	}
	var names, probes []string
	var selected []*v1alpha1.PodProbeMarker
	for _, m := range markers {
		names = append(names, m.Name)
		if m.Name != name {
			continue
		}
		for i := range m.Spec.Probes {
			probes = append(probes, m.Spec.Probes[i].Name)
		}
		selected = append(selected, m)
	}
	if len(selected) == 0 {
		return nil, cluster.NotFound(kind, name, names, where)
	}
	if probe != "" && !slices.Contains(probes, probe) {
		return nil, cluster.NotFound("probe", probe, probes, " in PodProbeMarker "+name)
	}
	return selected, nil
}

// wants reports whether the flag selects the probe.
func (o *Options) wants(probe string) bool {
	return o.selected.Probe == "" || o.selected.Probe == probe
}
