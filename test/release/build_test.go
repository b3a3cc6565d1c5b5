// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	// repository is the root of the repository.
	repository = "../.."
	// releaseVersion is the version of the releases that the tests build.
	releaseVersion = "v0.9.0-test.1"
)

// TestReproducibleRelease builds the commit that is checked out twice, in clones in different folders, and compares all
// files. The builds share the caches of Go. If SEAMARK_DIST is set, the artifacts of one build are kept in this folder.
func TestReproducibleRelease(t *testing.T) {
	if changes := run(t, repository, "git", "status", "--porcelain"); changes != "" {
		t.Logf("these changes are not committed and not part of the release:\n%s", changes)
	}
	var folders []string
	var sums []map[string]string
	for _, folder := range []string{"here", "in/another/place"} {
		start := time.Now()
		clone := filepath.Join(t.TempDir(), folder)
		run(t, repository, "git", "clone", "--quiet", ".", clone)
		run(t, clone, "make", "--no-print-directory", "release", "VERSION="+releaseVersion)
		t.Logf("built a release in %s", time.Since(start).Round(time.Second))
		folders = append(folders, filepath.Join(clone, "dist"))
		sums = append(sums, sumsOf(t, filepath.Join(clone, "dist")))
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("SHA-256 sums of the two builds:\n%s", diff)
	}
	checkNames(t, sums[0])
	checkPrograms(t, folders[0])
	if keep := os.Getenv("SEAMARK_DIST"); keep != "" && !t.Failed() {
		if err := errors.Join(os.RemoveAll(keep), os.CopyFS(keep, os.DirFS(folders[0]))); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command in a folder, without the variables of the make that runs the test, and returns its output.
func run(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = folder
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "MAKE"), name == "MFLAGS", name == "SEAMARK_BIN", name == "VERSION", name == "DIST":
		default:
			command.Env = append(command.Env, variable)
		}
	}
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, failure.String())
	}
	return string(out)
}

// sumsOf returns the sums of all files in a folder by their relative paths.
func sumsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		sum := sha256.Sum256(text)
		sums[name] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// checkNames checks that the files at the top are complete, and that checksums.txt lists them.
func checkNames(t *testing.T, sums map[string]string) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range []string{"changelog.md", "checksums.txt", "install.yaml", "provenance.intoto.json", "seamark.yaml",
		"seamark-" + strings.TrimPrefix(releaseVersion, "v") + ".tgz"} {
		want[name] = true
	}
	for _, program := range []string{"seamark-manager", "seamark-agent", "seamark-workloads"} {
		want[program+"_"+releaseVersion+"_image.tar"] = true
		for _, arch := range []string{"amd64", "arm64"} {
			want[program+"_"+releaseVersion+"_linux_"+arch+".cdx.json"] = true
		}
	}
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64"} {
		want["seamark_"+releaseVersion+"_"+platform+".cdx.json"] = true
		for _, program := range []string{"seamark", "kubectl-seamark"} {
			want[program+"_"+releaseVersion+"_"+platform+archiveSuffix(platform)] = true
		}
	}
	got := map[string]bool{}
	for name := range sums {
		if !strings.Contains(name, "/") {
			got[name] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func archiveSuffix(platform string) string {
	if strings.HasPrefix(platform, "windows") {
		return ".zip"
	}
	return ".tar.gz"
}

// checkPrograms checks the platform of the program in each archive, and runs the one for this machine.
func checkPrograms(t *testing.T, dist string) {
	t.Helper()
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64"} {
		name := "seamark_" + releaseVersion + "_" + platform + archiveSuffix(platform)
		program := unpack(t, filepath.Join(dist, name))
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		settings := map[string]string{}
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
		if got := settings["GOOS"] + "_" + settings["GOARCH"]; got != platform || settings["-trimpath"] != "true" || settings["CGO_ENABLED"] != "0" {
			t.Errorf("%s: settings %v", name, settings)
		}
		if platform != "linux_"+runtime.GOARCH {
			continue
		}
		want := "seamark " + releaseVersion + " ("
		if out := run(t, t.TempDir(), program, "--version"); !strings.HasPrefix(out, want) {
			t.Errorf("%s: version %q, want %q", name, out, want)
		}
	}
}

// unpack writes the program in an archive to a new folder and returns its path.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	from, err := openProgram(archive, content)
	if err != nil {
		t.Fatalf("find the program in %s: %v", archive, err)
	}
	program, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "seamark")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func openProgram(archive string, content []byte) (io.Reader, error) {
	if strings.HasSuffix(archive, ".zip") {
		reader, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil, err
		}
		return reader.Open("seamark.exe")
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if err != nil || header.Name == "seamark" {
			return reader, err
		}
	}
}
