// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestJoin(t *testing.T) {
	for name, test := range map[string]struct {
		flag, args, want []string
		err              string
	}{
		"both":             {flag: []string{"a.yaml"}, args: []string{"b", "-"}, want: []string{"a.yaml", "b", "-"}},
		"empty":            {args: []string{""}, err: `file name: "" is invalid: must not be empty`},
		"two inputs":       {flag: []string{"-"}, args: []string{"-"}, err: `file name: "-" is given more than once: the standard input can be read only once`},
		"two equal inputs": {args: []string{"-", "a", "-"}, err: `file name: "-" is given more than once: the standard input can be read only once`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := files.Join(test.flag, test.args)
			if err == nil && test.err != "" || err != nil && err.Error() != test.err {
				t.Errorf("error %v, want %q", err, test.err)
			}
			expect.Equal(t, "names", test.want, got)
		})
	}
}

func TestSplit(t *testing.T) {
	names, pods := files.Split([]string{
		"game-0", "marker.yaml", "pod/game.yaml", "./folder", "folder/", "pods/game-1", "-", ".", "game.v2", "a.json", "/tmp/a.yml",
	})
	expect.Equal(t, "files", []string{"marker.yaml", "./folder", "folder/", "-", ".", "a.json", "/tmp/a.yml"}, names)
	expect.Equal(t, "pods", []string{"game-0", "pod/game.yaml", "pods/game-1", "game.v2"}, pods)
}

func TestLoadFiles(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", "c.json", "README.md", "sub/d.yaml", "other", ".e.yaml", ".git/f.yaml"} {
		path := filepath.Join(folder, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.NoError(t, os.WriteFile(path, []byte(name), 0o600))
	}
	// A ConfigMap is mounted with links to its files. The link to a folder is followed only if it is named.
	for name, target := range map[string]string{"link": "sub", "sub/g.yaml": "../.e.yaml", "sub/null.yaml": os.DevNull} {
		expect.NoError(t, os.Symlink(target, filepath.Join(folder, name)))
	}
	inputs, err := (&files.Loader{Stdin: strings.NewReader("x")}).Load(
		t.Context(), []string{folder, "-", filepath.Join(folder, "other"), filepath.Join(folder, "link")},
	)
	expect.NoError(t, err)
	var got []string
	for _, input := range inputs {
		got = append(got, strings.TrimPrefix(input.Name, folder+"/"))
	}
	if diff := cmp.Diff([]string{"a.yml", "b.yaml", "c.json", "sub/d.yaml", "sub/g.yaml", "standard input", "other", "link/d.yaml", "link/g.yaml"}, got); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

// TestVariants has folders with a kustomization below others.
func TestVariants(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	const object, values = "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n", "replicas: 1\n"
	outside, own := "resources: [../../app.yaml]\n", "resources: [app.yaml]\n"
	clitest.WriteFiles(t, folder, map[string]string{
		"app/app.yaml": object, "app/overlays/prod/kustomization.yaml": outside, "app/copy/app.yaml": object, "app/copy/kustomization.yaml": own,
		"app/more/pod.yaml": object, "bases/values.yaml": values, "bases/a/app.yaml": object, "bases/a/kustomization.yaml": own,
	})
	for name, want := range map[string][]string{
		"app": {"app/app.yaml", "app/more/pod.yaml"}, "app/copy": {"app/copy/kustomization.yaml"}, "app/": {"app/app.yaml", "app/more/pod.yaml"},
		"bases": {"bases/a/kustomization.yaml", "bases/values.yaml"},
		".":     {"app/app.yaml", "app/more/pod.yaml", "bases/a/kustomization.yaml", "bases/values.yaml"},
	} {
		inputs, err := (&files.Loader{}).Load(t.Context(), []string{name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, input := range inputs {
			got = append(got, input.Name)
		}
		expect.Equal(t, name+": inputs", want, got)
	}
}

func TestLimits(t *testing.T) {
	names := slices.Repeat([]string{files.Stdin}, 5)
	large := strings.NewReader(strings.Repeat("#", 5*files.MaxBytes))
	for name, test := range map[string]struct {
		in   io.Reader
		want string
	}{
		"file":  {large, "larger than 16777216 bytes"},
		"total": {&parts{}, "more than 10000 files or 67108864 bytes: read fewer files at once"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&files.Loader{Stdin: test.in}).Load(t.Context(), names)
			expect.ErrorWith(t, "Load()", test.want, err)
		})
	}
}

// parts are files of the maximum size, one after another.
type parts struct{ read int }

func (p *parts) Read(buffer []byte) (int, error) {
	if p.read == files.MaxBytes {
		p.read = 0
		return 0, io.EOF
	}
	n := min(len(buffer), files.MaxBytes-p.read)
	p.read += n
	return n, nil
}
