// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestReleaseFitsIntoASecret installs everything without a cluster, and measures what Helm would store: the chart and the
// manifests, compressed, in a Secret of at most 1 MiB. Both contain the CRDs.
func TestReleaseFitsIntoASecret(t *testing.T) {
	const limit = 700 << 10
	release := output(t, tool(t, "helm"), "install", "seamark", "charts/seamark", "--namespace", "ns", "--dry-run=client", "--output", "json",
		"--values", valuesFile(t, everything), "--set",
		"sidecarSets.enabled=true,workloads.controllers={cloneset,statefulset,advancedcronjob,daemonset,broadcastjob,imagepulljob}")
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	expect.NoError(t, err)
	if _, err := writer.Write(release); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, writer.Close())
	size := base64.StdEncoding.EncodedLen(compressed.Len())
	t.Logf("the release has %d KiB", size>>10)
	if size > limit {
		t.Errorf("the release has %d bytes, more than %d", size, limit)
	}
}

// TestCRDsAreSmall measures the CRDs as the API server stores them.
func TestCRDsAreSmall(t *testing.T) {
	const limit = 400 << 10
	paths, err := filepath.Glob(filepath.Join(repository, "config", "crd", "*", "*.*_*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d CRDs, error %v", len(paths), err)
	}
	for _, path := range paths {
		if filepath.Base(filepath.Dir(path)) == "embedded" {
			continue
		}
		content, err := os.ReadFile(path)
		expect.NoError(t, err)
		encoded, err := yaml.YAMLToJSON(content)
		expect.NoError(t, err)
		if len(encoded) > limit {
			t.Errorf("%s has %d bytes, more than %d", path, len(encoded), limit)
		}
		t.Logf("%s has %d KiB", filepath.Base(path), len(encoded)>>10)
	}
}
