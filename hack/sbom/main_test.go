// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

// TestPrograms writes the bills of released programs, which make has built, and compares them with what
// `go version -m` prints.
func TestPrograms(t *testing.T) {
	bin := os.Getenv("SEAMARK_BIN")
	if bin == "" {
		t.Fatal("SEAMARK_BIN is not set: run `make test-unit`")
	}
	for _, name := range []string{"seamark", "seamark-agent", "seamark-manager"} {
		t.Run(name, func(t *testing.T) {
			program, out := filepath.Join(bin, name), filepath.Join(t.TempDir(), "bill.json")
			var texts [2][]byte
			for i := range texts {
				if err := run([]string{"--version", "v1.2.3", "--out", out, program}); err != nil {
					t.Fatal(err)
				}
				texts[i] = readFile(t, out)
			}
			if !bytes.Equal(texts[0], texts[1]) {
				t.Error("two bills of one program differ")
			}
			bill := &cyclonedx.BOM{}
			if err := cyclonedx.NewBOMDecoder(bytes.NewReader(texts[0]), cyclonedx.BOMFileFormatJSON).Decode(bill); err != nil {
				t.Fatal(err)
			}
			printed, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).Output()
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"std": strings.TrimPrefix(runtime.Version(), "go") + " "}
			for line := range strings.Lines(string(printed)) {
				if fields := strings.Fields(line); len(fields) == 4 && fields[0] == "dep" {
					sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(fields[3], "h1:"))
					if err != nil {
						t.Fatal(err)
					}
					want[fields[1]] = fields[2] + " " + hex.EncodeToString(sum)
				}
			}
			if len(want) < 10 {
				t.Fatalf("go version -m lists %d modules", len(want))
			}
			got := map[string]string{}
			for _, c := range *bill.Components {
				got[c.Name] = c.Version + " " + hashOf(c)
				if !strings.HasPrefix(c.PackageURL, "pkg:golang/") {
					t.Errorf("package URL %q", c.PackageURL)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("modules (-program +bill):\n%s", diff)
			}
			sum := sha256.Sum256(readFile(t, program))
			self := bill.Metadata.Component
			if want := hex.EncodeToString(sum[:]); hashOf(*self) != want {
				t.Errorf("the program's hash is %s, want %s", hashOf(*self), want)
			}
			if want := "pkg:golang/github.com/seamark-dev/seamark@v1.2.3#cmd/" + name; self.PackageURL != want {
				t.Errorf("package URL %q, want %q", self.PackageURL, want)
			}
		})
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func hashOf(c cyclonedx.Component) string {
	if c.Hashes == nil {
		return ""
	}
	return (*c.Hashes)[0].Value
}

func TestReplacedModule(t *testing.T) {
	module := &debug.Module{Path: "example.org/b", Version: "v2.0.0+incompatible", Sum: "h1:" + base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))}
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{{Path: "example.org/a", Sum: "h1:other", Replace: module}}}
	bill, err := newBill(info, "p", "v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range *bill.Components {
		got = append(got, c.PackageURL)
	}
	if diff := cmp.Diff([]string{"pkg:golang/example.org/b@v2.0.0%2Bincompatible", "pkg:golang/std@1.26.8"}, got); diff != "" {
		t.Error(diff)
	}
	// A module in a local folder has no hash.
	module.Path, module.Sum = "../b", ""
	if _, err := newBill(info, "p", "v1", nil); err == nil || !strings.Contains(err.Error(), "../b") {
		t.Errorf("error %v, want module ../b", err)
	}
}

func TestInvalidArguments(t *testing.T) {
	folder := t.TempDir()
	text, out := filepath.Join(folder, "text"), filepath.Join(folder, "out")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`"--out" "out" "text"] are invalid: must be --version VERSION --out FILE PROGRAM`: {"--out", "out", "text"},
		`"--version" "v1" "--out" "out"] are invalid`:                                     {"--version", "v1", "--out", "out"},
		"read build information": {"--version", "v1", "--out", out, text},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the bill was written")
	}
}
