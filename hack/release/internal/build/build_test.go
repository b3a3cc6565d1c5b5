// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/hack/release/internal/expect"
	"github.com/seamark-dev/seamark/hack/release/internal/version"
)

// source is the root of the repository.
const source = "../../../.."

// artifacts runs all steps except the compiler and the SBOMs, which need real programs. `make test-release` runs
// all of them.
func artifacts(t *testing.T) (*run, map[string][]byte) {
	t.Helper()
	r := &run{
		Options: Options{
			Source: source, Registry: "docker.io/seamark", URL: "https://example.org/v0.2.0/", Helm: filepath.Join(os.Getenv("SEAMARK_BIN"), "helm"),
		},
		version:   "v0.2.0",
		commit:    version.Commit{Hash: strings.Repeat("a", 40), Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)},
		toolchain: "go1.26.8", out: t.TempDir(), work: t.TempDir(), digests: map[string]string{},
	}
	for _, p := range commandLinePlatforms() {
		expect.NoError(t, os.Mkdir(r.programFolder(p), 0o755))
		for _, name := range []string{"seamark", "seamark-manager", "seamark-agent", "seamark-workloads"} {
			expect.NoError(t, os.WriteFile(filepath.Join(r.programFolder(p), p.file(name)), []byte(name+" for "+p.String()), 0o755))
		}
	}
	steps := []func(context.Context) error{r.changelog, r.images, r.chart, r.archives, r.seal}
	if os.Getenv("SEAMARK_BIN") != "" {
		steps = slices.Insert(steps, 3, r.manifests)
	}
	for _, step := range steps {
		expect.NoError(t, step(t.Context()))
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(r.out)
	expect.NoError(t, err)
	for _, entry := range entries {
		if !entry.IsDir() {
			if files[entry.Name()], err = os.ReadFile(filepath.Join(r.out, entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r, files
}

func TestArtifacts(t *testing.T) {
	r, files := artifacts(t)
	script, err := os.ReadFile(filepath.Join(source, "cmd/seamark/kubectl_complete-seamark"))
	expect.NoError(t, err)
	for name, want := range map[string]map[string]string{
		"seamark_v0.2.0_linux_amd64.tar.gz": {"seamark": "seamark for linux_amd64"},
		"kubectl-seamark_v0.2.0_darwin_arm64.tar.gz": {
			"kubectl-seamark": "seamark for darwin_arm64", "kubectl_complete-seamark": string(script),
		},
		"kubectl-seamark_v0.2.0_windows_amd64.zip": {"kubectl-seamark.exe": "seamark for windows_amd64"},
	} {
		got := content(t, name, files[name], r.commit.Time)
		if got["LICENSE"] == "" {
			t.Errorf("%s has no license", name)
		}
		delete(got, "LICENSE")
		expect.Equal(t, name, want, got)
	}
	checkChart(t, r, content(t, "seamark-0.2.0.tgz", files["seamark-0.2.0.tgz"], r.commit.Time))
	checkSums(t, files)
	checkProvenance(t, r, files)
	checkPlugin(t, files)
	if os.Getenv("SEAMARK_BIN") == "" {
		t.Log("install.yaml is not tested: SEAMARK_BIN is not set, run `make test-unit`")
		return
	}
	manifests := string(files["install.yaml"])
	for _, want := range []string{
		"kind: Namespace\nmetadata:\n  name: seamark-system\n", "pod-security.kubernetes.io/enforce: privileged", "kind: CustomResourceDefinition",
		"docker.io/seamark/seamark-manager@" + r.digests["manager"], "docker.io/seamark/seamark-agent@" + r.digests["agent"],
	} {
		if !strings.Contains(manifests, want) {
			t.Errorf("install.yaml does not contain %q", want)
		}
	}
	if strings.Contains(manifests, "helm.sh/hook") {
		t.Error("install.yaml contains a hook")
	}
}

// content returns the files in an archive, and checks their times.
func content(t *testing.T, name string, data []byte, at time.Time) map[string]string {
	t.Helper()
	files := map[string]string{}
	add := func(file string, modified time.Time, from io.Reader) {
		text, err := io.ReadAll(from)
		expect.NoError(t, err)
		if !modified.Equal(at) {
			t.Errorf("%s: the time of %s is %s", name, file, modified)
		}
		files[file] = string(text)
	}
	if strings.HasSuffix(name, ".zip") {
		archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		expect.NoError(t, err)
		for _, file := range archive.File {
			from, err := file.Open()
			expect.NoError(t, err)
			add(file.Name, file.Modified, from)
		}
		return files
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(data))
	expect.NoError(t, err)
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		expect.NoError(t, err)
		add(header.Name, header.ModTime, archive)
	}
}

func checkChart(t *testing.T, r *run, files map[string]string) {
	t.Helper()
	var metadata struct{ Version, AppVersion string }
	expect.NoError(t, yaml.Unmarshal([]byte(files["seamark/Chart.yaml"]), &metadata))
	if metadata.Version != "0.2.0" || metadata.AppVersion != "v0.2.0" {
		t.Errorf("chart %+v", metadata)
	}
	type part struct{ Image struct{ Digest string } }
	var values struct{ Manager, Agent, Workloads part }
	expect.NoError(t, yaml.Unmarshal([]byte(files["seamark/values.yaml"]), &values))
	got := []string{values.Manager.Image.Digest, values.Agent.Image.Digest, values.Workloads.Image.Digest}
	want := []string{r.digests["manager"], r.digests["agent"], r.digests["workloads"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(want[0], "sha256:") || !strings.Contains(files["seamark/values.yaml"], "# Number of managers.") {
		t.Errorf("digests %v, or values without comments", want)
	}
}

func checkSums(t *testing.T, files map[string][]byte) {
	t.Helper()
	listed := map[string]bool{"checksums.txt": true}
	for line := range strings.Lines(string(files["checksums.txt"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if sumOf(files[name]) != sum {
			t.Errorf("sum of %s: %s", name, sum)
		}
		listed[name] = true
	}
	expect.Equal(t, "files", slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(listed)))
}

func checkProvenance(t *testing.T, r *run, files map[string][]byte) {
	t.Helper()
	statement := &intoto.Statement{}
	expect.NoError(t, protojson.Unmarshal(files["provenance.intoto.json"], statement))
	predicate, err := protojson.Marshal(statement.GetPredicate())
	expect.NoError(t, err)
	provenance := &slsa.Provenance{}
	if err := errors.Join(statement.Validate(), protojson.Unmarshal(predicate, provenance), provenance.Validate()); err != nil {
		t.Error(err)
	}
	got := map[string]string{}
	for _, s := range statement.GetSubject() {
		got[s.GetName()] = s.GetDigest()["sha256"]
	}
	want := map[string]string{
		"docker.io/seamark/seamark-manager":   strings.TrimPrefix(r.digests["manager"], "sha256:"),
		"docker.io/seamark/seamark-agent":     strings.TrimPrefix(r.digests["agent"], "sha256:"),
		"docker.io/seamark/seamark-workloads": strings.TrimPrefix(r.digests["workloads"], "sha256:"),
		"docker.io/seamark/seamark":           strings.TrimPrefix(r.digests["seamark"], "sha256:"),
	}
	for name, data := range files {
		if name != "checksums.txt" && name != "provenance.intoto.json" {
			want[name] = sumOf(data)
		}
	}
	expect.Equal(t, "subjects", want, got)
	build := provenance.GetBuildDefinition()
	if build.GetResolvedDependencies()[0].GetDigest()["gitCommit"] != r.commit.Hash || build.GetInternalParameters().AsMap()["go"] != r.toolchain {
		t.Errorf("build definition %v", build)
	}
}

func checkPlugin(t *testing.T, files map[string][]byte) {
	t.Helper()
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector    struct{ MatchLabels map[string]string }
				URI, SHA256 string
				Bin         string
			}
		}
	}
	expect.NoError(t, yaml.Unmarshal(files["seamark.yaml"], &manifest))
	got := map[string]bool{}
	for _, p := range manifest.Spec.Platforms {
		file, found := strings.CutPrefix(p.URI, "https://example.org/v0.2.0/")
		if !found || sumOf(files[file]) != p.SHA256 {
			t.Errorf("archive %s with sum %s", p.URI, p.SHA256)
		}
		got[p.Selector.MatchLabels["os"]+" "+p.Selector.MatchLabels["arch"]+" "+p.Bin] = true
	}
	want := map[string]bool{
		"linux amd64 kubectl-seamark": true, "linux arm64 kubectl-seamark": true, "darwin amd64 kubectl-seamark": true,
		"darwin arm64 kubectl-seamark": true, "windows amd64 kubectl-seamark.exe": true,
	}
	if diff := cmp.Diff(want, got); diff != "" || manifest.Spec.Version != "v0.2.0" {
		t.Errorf("version %s, platforms:\n%s", manifest.Spec.Version, diff)
	}
}

func TestSameCommitSameArtifacts(t *testing.T) {
	_, first := artifacts(t)
	_, second := artifacts(t)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"version":       {func(o *Options) { o.Version = "0.2.0" }, `version: "0.2.0" is invalid: must be a semantic version`},
		"registry":      {func(o *Options) { o.Registry = "docker.io/Seamark" }, `registry: "docker.io/Seamark" is invalid: must be `},
		"ends in slash": {func(o *Options) { o.Registry = "docker.io/seamark/" }, `registry: "docker.io/seamark/" is invalid: must be `},
		"url":           {func(o *Options) { o.URL = "example.org" }, `url: "example.org" is invalid: must be an HTTP or HTTPS URL`},
		"no repository": {func(o *Options) { o.Source = t.TempDir() }, "git status"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{
				Version: "v0.2.0", Source: source, Out: filepath.Join(t.TempDir(), "out"), Registry: "docker.io/seamark",
				URL: "https://example.org", Progress: io.Discard,
			}
			test.change(&o)
			if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if _, err := os.Stat(o.Out); err == nil {
				t.Error("the output was written")
			}
		})
	}
}
