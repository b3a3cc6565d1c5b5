// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/lint"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/internal/manifest/files"
)

const (
	// maxFileBytes limits a file.
	maxFileBytes = 4 << 20
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
	var manifests []lint.File
	for _, name := range o.Filenames {
		paths := []string{name}
		if name != files.Stdin {
			var err error
			if paths, err = files.Expand(name); err != nil {
				return nil, fmt.Errorf("read marker: %w", err)
			}
		}
		for _, path := range paths {
			file, err := o.readFile(path)
			if err != nil {
				return nil, err
			}
			manifests = append(manifests, file)
		}
	}
	if err := check(ctx, manifests); err != nil {
		return nil, err
	}
	var markers []*v1alpha1.PodProbeMarker
	for _, file := range manifests {
		found, err := markersIn(file)
		if err != nil {
			return nil, err
		}
		markers = append(markers, found...)
	}
	if len(markers) == 0 {
		return nil, fmt.Errorf("%s: no PodProbeMarker", strings.Join(o.Filenames, ", "))
	}
	markers, err := o.selectMarkers(markers, " in "+strings.Join(o.Filenames, ", "))
	if err == nil && len(markers) > maxMarkers {
		err = fmt.Errorf("%s: %d PodProbeMarkers: must be at most %d; select one with -m", strings.Join(o.Filenames, ", "), len(markers), maxMarkers)
	}
	return markers, err
}

func (o *Options) readFile(name string) (lint.File, error) {
	from, shown := o.In, "standard input"
	if name != files.Stdin {
		file, err := os.Open(name)
		if err != nil {
			return lint.File{}, fmt.Errorf("read marker: %w", err)
		}
		defer file.Close()
		from, shown = file, name
	}
	content, err := io.ReadAll(io.LimitReader(from, maxFileBytes+1))
	if err != nil {
		return lint.File{}, fmt.Errorf("read marker %s: %w", shown, err)
	}
	if len(content) > maxFileBytes {
		return lint.File{}, fmt.Errorf("read marker %s: larger than %d bytes", shown, maxFileBytes)
	}
	return lint.File{Name: shown, Content: content}, nil
}

// check returns the errors of the markers. Other objects in the files do not matter.
func check(ctx context.Context, files []lint.File) error {
	result, err := (&lint.Linter{}).Check(ctx, files)
	if err != nil {
		return err
	}
	var errs []error
	for _, finding := range result.Findings {
		if finding.Severity != lint.Error || finding.Object != "" && !strings.HasPrefix(finding.Object, kind+" ") {
			continue
		}
		message := finding.Message
		if finding.Field != "" {
			message = finding.Field + ": " + message
		}
		errs = append(errs, fmt.Errorf("%s:%d:%d: %s", finding.File, finding.Line, finding.Column, message))
	}
	return errors.Join(errs...)
}

// manifest is an object, or a list of them.
type manifest struct {
	Kind  string            `json:"kind"`
	Items []json.RawMessage `json:"items"`
}

// markersIn returns the markers of a file that check has accepted.
func markersIn(file lint.File) ([]*v1alpha1.PodProbeMarker, error) {
	documents, err := document.Split(file.Content)
	if err != nil {
		return nil, fmt.Errorf("read marker %s: %w", file.Name, err)
	}
	var markers []*v1alpha1.PodProbeMarker
	for _, d := range documents {
		var object manifest
		if err := json.Unmarshal(d.JSON, &object); err != nil {
			return nil, fmt.Errorf("read marker %s: %w", file.Name, err)
		}
		contents := object.Items
		if object.Kind == kind {
			contents = []json.RawMessage{d.JSON}
		}
		for _, content := range contents {
			marker := &v1alpha1.PodProbeMarker{}
			if err := json.Unmarshal(content, &object); err != nil || object.Kind != kind {
				continue
			}
			if err := json.Unmarshal(content, marker); err != nil {
				return nil, fmt.Errorf("read marker %s: %w", file.Name, err)
			}
			markers = append(markers, marker)
		}
	}
	return markers, nil
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
