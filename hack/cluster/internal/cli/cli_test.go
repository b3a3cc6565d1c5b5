// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run runs the program and returns what it reports.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := New(&out)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append(args, "--dir", t.TempDir()))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestImage(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	args := []string{"image", "--name", "example.org/app:1", "--out", archive, "--user", "1000", "--file", source + "=/program"}
	first, err := run(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(first, "example.org/app:1 sha256:") {
		t.Errorf("output %q", first)
	}
	second, err := run(t, args...)
	if err != nil || second != first {
		t.Errorf("output %q, then %q, error %v", first, second, err)
	}
	if other, err := run(t, append(args, "--entrypoint", "/program")...); err != nil || other == first {
		t.Errorf("another entrypoint does not change the image: %q, error %v", other, err)
	}
}

func TestInvalidArguments(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown program":     {args: []string{"build", "--only", "kube-apiserverr"}, want: "kube-apiserver,"},
		"unknown runtime":     {args: []string{"up", "--runtime", "docker"}, want: "containerd, containerd-1.7 or debian"},
		"one unknown runtime": {args: []string{"up", "--runtime", "debian,docker"}, want: `"docker" is invalid`},
		"no nodes":            {args: []string{"up", "--nodes", "0"}, want: "1 to 99"},
		"nothing to load":     {args: []string{"load"}, want: "at least 1"},
		"no cluster to load":  {args: []string{"load", "image.tar"}, want: "cluster"},
		"image without files": {args: []string{"image", "--name", "a:1", "--out", "a.tar"}, want: "rootfs file"},
		"file without path":   {args: []string{"image", "--name", "a:1", "--out", "a.tar", "--file", "a"}, want: "HOST=PATH"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, output %q, want %q", err, out, test.want)
			}
		})
	}
}
