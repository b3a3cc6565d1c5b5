// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
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

func TestEveryProgramIsPinned(t *testing.T) {
	for _, program := range append(Programs(Own), Containerd17()...) {
		text, err := os.ReadFile(filepath.Join("..", "..", program.Module, "go.mod"))
		expect.NoError(t, err)
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
		expect.NoError(t, os.WriteFile(filepath.Join(source, "main.go"), []byte(text), 0o644))
	}
	builder := &Builder{Source: source}
	stamp := func(program Program, mod string) string {
		text, err := builder.stamp(program, []byte(mod), "-flag")
		expect.NoError(t, err)
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

func TestKubernetesModule(t *testing.T) {
	const original = `module k8s.io/kubernetes

go 1.23.0

godebug default=go1.23

require (
	example.org/a v1.2.3
	k8s.io/api v0.0.0
	k8s.io/sample-controller v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/cri-api => ./staging/src/k8s.io/cri-api
	k8s.io/cri-client => ./staging/src/k8s.io/cri-client
	k8s.io/sample-controller => ./staging/src/k8s.io/sample-controller
)
`
	const want = `module seamark.dev/kubernetes

go 1.23.0

godebug default=go1.23

require (
	example.org/a v1.2.3
	k8s.io/api v0.0.0
	k8s.io/kubernetes v1.32.4
)

replace (
	k8s.io/api => k8s.io/api v0.32.4
	k8s.io/cri-api => k8s.io/cri-api v0.32.3
	k8s.io/cri-client => /tmp/cri-client
)
`
	got, err := kubernetesModule([]byte(original), "v1.32.4", map[string]string{
		"k8s.io/cri-api": "v0.32.3", "k8s.io/cri-client": "/tmp/cri-client",
	})
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("error %v, go.mod (-want +got):\n%s", err, diff)
	}
}

func TestKubernetesVersionIsAMinor(t *testing.T) {
	for _, version := range []string{"", "1", "v1.32", "1.32.4", "latest"} {
		_, err := WriteKubernetes(t.Context(), t.TempDir(), version, nil)
		if err == nil || !strings.Contains(err.Error(), "must be a minor version such as 1.32") {
			t.Errorf("version %q: error %v", version, err)
		}
	}
}
