// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/process"
)

// release is the name of the release that `make install` installs.
const release = "seamark"

// suite is the cluster, a namespace in it, and the release.
type suite struct {
	*cluster.Cluster
	helmPath string
	// values is a file with the values that the release had at the start.
	values string
}

// newSuite connects to the cluster and creates a namespace. When the test ends, it restores
// the release.
func newSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{Cluster: cluster.Connect(t, "../../.."), values: filepath.Join(t.TempDir(), "values.yaml")}
	var err error
	s.helmPath, err = process.Built("helm", "test-e2e")
	cluster.Must(t, err)
	cluster.Must(t, os.WriteFile(s.values, []byte(s.helm("get", "values", release, "-o", "yaml")), 0o600))
	s.CreateNamespace("install-", s.restore)
	return s
}

// restore restores the release, whatever state the test left it in.
func (s *suite) restore(ctx context.Context) {
	if s.Failed() {
		out, err := s.TryKubectl(ctx, "get", "pods,jobs", "-o", "wide", "--namespace", cluster.SystemNamespace)
		s.Logf("state of %s (%v):\n%s", cluster.SystemNamespace, err, out)
	}
	args := append([]string{"upgrade", "--install", release, "charts/seamark", "--force-conflicts"}, s.installArgs()...)
	out, err := s.tryHelm(ctx, args...)
	if err != nil {
		s.Logf("upgrade the release: %v\n%s", err, out)
		if out, err = s.tryHelm(ctx, "uninstall", release, "--no-hooks", "--wait"); err == nil {
			out, err = s.tryHelm(ctx, args...)
		}
	}
	if err != nil {
		s.Errorf("restore the release: %v\n%s", err, out)
	}
}

// install installs the chart with the initial values of the release and more arguments.
func (s *suite) install(more ...string) string {
	s.Helper()
	return s.helm(append(append([]string{"install", release, "charts/seamark"}, s.installArgs()...), more...)...)
}

func (s *suite) installArgs() []string {
	return []string{"-f", s.values, "--wait", "--timeout", cluster.Timeout.String()}
}

// helm runs helm in the release's namespace and returns its output.
func (s *suite) helm(args ...string) string {
	s.Helper()
	out, err := s.tryHelm(s.Context(), args...)
	if err != nil {
		s.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *suite) tryHelm(ctx context.Context, args ...string) (string, error) {
	return s.Run(ctx, s.helmPath, append(args, "--kubeconfig", s.Kubeconfig(), "--namespace", cluster.SystemNamespace)...)
}

// contains checks that the output contains all wanted texts.
func (s *suite) contains(what, output string, wants ...string) {
	s.Helper()
	for _, want := range wants {
		if !strings.Contains(output, want) {
			s.Errorf("%s printed\n%s\nwant it to contain %q", what, output, want)
		}
	}
}
