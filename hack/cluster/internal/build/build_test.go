// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSelect(t *testing.T) {
	programs := []Program{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	tests := map[string]struct {
		names   []string
		want    []string
		wantErr string
	}{
		"all":     {want: []string{"a", "b", "c"}},
		"some":    {names: []string{"c", "a"}, want: []string{"c", "a"}},
		"unknown": {names: []string{"a", "x"}, wantErr: "a, b, c"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			selected, err := Select(programs, test.names)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v", err)
				}
				return
			}
			var got []string
			for _, program := range selected {
				got = append(got, program.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v, %s", err, diff)
			}
		})
	}
}

const goMod = `module example.org/m

require (
	example.org/a v1.36.3
	example.org/b v0.2.0
)
`

func TestLinkerFlagsSetTheVersion(t *testing.T) {
	program := Program{Name: "p", Version: "example.org/a", VersionVars: []string{"q/version.gitVersion"}}
	got, err := program.linkerFlags([]byte(goMod))
	if err != nil {
		t.Fatal(err)
	}
	const want = "-s -w -buildid= -X q/version.gitVersion=v1.36.3" +
		" -X q/version.gitMajor=1 -X q/version.gitMinor=36 -X q/version.gitTreeState=archive"
	if got != want {
		t.Errorf("flags %q, want %q", got, want)
	}
	program.Version = "example.org/missing"
	if _, err := program.linkerFlags([]byte(goMod)); err == nil {
		t.Error("no error for a module that go.mod does not require")
	}
}

func TestEveryProgramIsPinned(t *testing.T) {
	for _, program := range append(Programs(Own), Containerd17()...) {
		text, err := os.ReadFile(filepath.Join("..", "..", program.Module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := program.linkerFlags(text); err != nil {
			t.Errorf("%s: %v", program.Name, err)
		}
		if !strings.HasPrefix(program.Package, ".") && !strings.Contains(string(text), "\t"+program.Package+"\n") {
			t.Errorf("%s: go.mod does not list %s as a tool", program.Name, program.Package)
		}
	}
}

func TestStamp(t *testing.T) {
	source := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(source, "main.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	builder := &Builder{Source: source}
	stamp := func(program Program, mod string) string {
		text, err := builder.stamp(program, []byte(mod), "-flag")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	write("one")
	program := Program{Name: "p", Package: "example.org/p", Sources: []string{"main.go"}}
	first := stamp(program, goMod)
	if stamp(program, goMod+"\ntool example.org/a/cmd\n") != first {
		t.Error("another tool changes the stamp")
	}
	own := "\nrequire github.com/seamark-dev/seamark/hack/a v0.0.0\nreplace github.com/seamark-dev/seamark/hack/a => ../a\n"
	if stamp(program, goMod+own) != first {
		t.Error("a module of this repository changes the stamp")
	}
	if stamp(program, strings.Replace(goMod, "v0.2.0", "v0.2.1", 1)) == first {
		t.Error("another version does not change the stamp")
	}
	if stamp(program, goMod+"\nreplace example.org/b => example.org/b v0.3.0\n") == first {
		t.Error("a replacement does not change the stamp")
	}
	write("two")
	if stamp(program, goMod) == first {
		t.Error("another source does not change the stamp")
	}
}

// TestEnsure builds two small programs.
func TestEnsure(t *testing.T) {
	source, out := t.TempDir(), filepath.Join(t.TempDir(), "bin")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.org/m\n\ngo 1.26\n")
	if err := os.Mkdir(filepath.Join(source, "tiny"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("main.go", "package main\n\nfunc main() {}\n")
	write("tiny/main.go", "package main\n\nfunc main() {}\n")
	builder := &Builder{Source: source, Out: out, Log: filepath.Join(t.TempDir(), "build.log"), Progress: io.Discard}
	programs := []Program{
		{Name: "tiny", Module: ".", Package: "./tiny", Sources: []string{"tiny/main.go"}},
		{Name: "other", Module: ".", Package: ".", Output: "m", Sources: []string{"main.go"}},
	}
	ensure := func() (time.Time, error) {
		err := builder.Ensure(t.Context(), programs)
		info, statErr := os.Stat(filepath.Join(out, "tiny"))
		if statErr != nil {
			t.Fatal(statErr)
		}
		return info.ModTime(), err
	}
	first, err := ensure()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(out, "other")); err != nil {
		t.Error(err)
	}
	if again, err := ensure(); err != nil || !again.Equal(first) {
		t.Errorf("rebuilt: %v, error %v", !again.Equal(first), err)
	}
	write("tiny/main.go", "package main\n\nfunc main() {} // A comment does not change the program.\n")
	if same, err := ensure(); err != nil || !same.Equal(first) {
		t.Errorf("replaced by the same bytes: %v, error %v", !same.Equal(first), err)
	}
	write("tiny/main.go", "package main\n\nfunc main() { broken }\n")
	if kept, err := ensure(); err == nil || !strings.Contains(err.Error(), "broken") || !kept.Equal(first) {
		t.Errorf("broken source: error %v, replaced %t", err, !kept.Equal(first))
	}
	write("tiny/main.go", "package main\n\nfunc main() { println() }\n")
	if fresh, err := ensure(); err != nil || fresh.Equal(first) {
		t.Errorf("changed source was not built, error %v", err)
	}
}

func TestEnsureStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte("module example.org/m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	builder := &Builder{Source: source, Out: t.TempDir(), Log: filepath.Join(t.TempDir(), "log"), Progress: io.Discard}
	if err := builder.Ensure(ctx, []Program{{Name: "p", Module: ".", Package: "."}}); err == nil {
		t.Error("no error from a cancelled build")
	}
}
