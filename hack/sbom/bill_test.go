// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

// output runs the go command.
func output(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func read(t *testing.T, name string) (string, *cyclonedx.BOM) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	bill := &cyclonedx.BOM{}
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(bill); err != nil {
		t.Fatal(err)
	}
	return string(text), bill
}

// modules returns "path version hash" of the modules in the program, as `go version -m`
// prints them.
func modules(t *testing.T, program string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for line := range strings.Lines(output(t, "version", "-m", program)) {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[0] != "dep" {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(fields[3], "h1:"))
		if err != nil {
			t.Fatal(err)
		}
		all[fields[1]+" "+fields[2]+" "+hex.EncodeToString(sum)] = true
	}
	return all
}

// TestPrograms writes the bills of all released programs, which make has built.
func TestPrograms(t *testing.T) {
	bin := os.Getenv("SEAMARK_BIN")
	if bin == "" {
		t.Fatal("SEAMARK_BIN is not set: run `make test-unit`")
	}
	for _, name := range []string{"seamark", "seamark-agent", "seamark-manager"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, program := t.TempDir(), filepath.Join(bin, name)
			if _, err := os.Stat(program); err != nil {
				t.Fatalf("find %s: %v: run `make test-unit`", name, err)
			}
			var texts [2]string
			var bill *cyclonedx.BOM
			for i := range texts {
				out := filepath.Join(dir, "bill.json")
				if err := run([]string{"--version", "v1.2.3", "--out", out, program}, io.Discard); err != nil {
					t.Fatal(err)
				}
				texts[i], bill = read(t, out)
			}
			if texts[0] != texts[1] {
				t.Error("two bills of one program differ")
			}
			want := modules(t, program)
			if len(want) < 10 {
				t.Fatalf("go version -m lists %d modules", len(want))
			}
			got := map[string]bool{}
			for _, c := range *bill.Components {
				if c.Name == "std" {
					if want := strings.TrimSpace(strings.TrimPrefix(output(t, "env", "GOVERSION"), "go")); c.Version != want {
						t.Errorf("standard library %s, want %s", c.Version, want)
					}
					continue
				}
				got[c.Name+" "+c.Version+" "+(*c.Hashes)[0].Value] = true
				if !strings.HasPrefix(c.PackageURL, "pkg:golang/") {
					t.Errorf("package URL %q", c.PackageURL)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("modules (-program +bill):\n%s", diff)
			}
			content, err := os.ReadFile(program)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(content)
			self := bill.Metadata.Component
			if got, want := (*self.Hashes)[0].Value, hex.EncodeToString(sum[:]); got != want {
				t.Errorf("the program's hash is %s, want %s", got, want)
			}
			if want := "pkg:golang/github.com/seamark-dev/seamark@v1.2.3#cmd/" + name; self.PackageURL != want {
				t.Errorf("package URL %q, want %q", self.PackageURL, want)
			}
		})
	}
}

func TestReplacedModule(t *testing.T) {
	sum := "h1:" + base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{{
		Path: "example.org/a", Version: "v1.0.0", Sum: "h1:other",
		Replace: &debug.Module{Path: "example.org/b", Version: "v2.0.0+incompatible", Sum: sum},
	}}}
	bill, err := newBill(info, "p", "v1", "00")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range *bill.Components {
		got = append(got, c.PackageURL)
	}
	want := []string{"pkg:golang/example.org/b@v2.0.0%2Bincompatible", "pkg:golang/std@1.26.8"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidArguments(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no version":       {[]string{"--out", out, text}, "must be --version VERSION --out FILE PROGRAM"},
		"no program":       {[]string{"--version", "v1", "--out", out}, "must be --version VERSION --out FILE PROGRAM"},
		"not a Go program": {[]string{"--version", "v1", "--out", out, text}, "read build information"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(test.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("the bill was written")
			}
		})
	}
	// A module in a local folder has no hash.
	info := &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.org/a", Replace: &debug.Module{Path: "../a"}}}}
	if _, err := newBill(info, "p", "v1", "00"); err == nil || !strings.Contains(err.Error(), "../a") {
		t.Errorf("error %v, want module ../a", err)
	}
}
