// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/expect"
)

// Without a cluster in a kubeconfig, nothing connects to the default address of kubectl.
func TestNoKubeconfig(t *testing.T) {
	folder := t.TempDir()
	missing, empty, others := filepath.Join(folder, "missing"), filepath.Join(folder, "empty"), filepath.Join(folder, "others")
	expect.NoError(t, os.WriteFile(empty, nil, 0o600))
	expect.NoError(t, os.WriteFile(others, []byte(`{apiVersion: v1, kind: Config,
contexts: [{name: b, context: {cluster: c}}, {name: a, context: {cluster: c}}], clusters: [{name: c, cluster: {variable: missing, server: "http://localhost:8080"}}]}`), 0o600))
	for name, test := range map[string]struct {
		variable, file, server, context, cluster, master string
		// want is the error, or empty if there is none.
		want string
	}{
		"no file": {
			variable: missing + ":" + missing + "2",
			want: "no kubeconfig found in " + missing + ", " + missing + "2 (from KUBECONFIG): " +
				"set KUBECONFIG or use --kubeconfig; `seamark local` needs no cluster",
		},
		"empty file":         {variable: empty, want: "no cluster in the kubeconfig " + empty + " (from KUBECONFIG): set"},
		"empty file of flag": {variable: others, file: empty, want: "no cluster in the kubeconfig " + empty + " (from --kubeconfig): set"},
		"no current context": {
			variable: others, want: "no current context in the kubeconfig " + others + " (from KUBECONFIG): use --context with one of a, b, or",
		},
		"context":           {variable: others, context: "a"},
		"cluster":           {variable: others, cluster: "c"},
		"server":            {variable: missing, server: "http://localhost:8080"},
		"KUBERNETES_MASTER": {variable: missing, master: "http://localhost:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.variable)
			t.Setenv("KUBERNETES_MASTER", test.master)
			f := NewFlags(genericiooptions.NewTestIOStreamsDiscard(), "v1")
			*f.KubeConfig, *f.APIServer, *f.Context, *f.ClusterName = test.file, test.server, test.context, test.cluster
			_, err := f.Connect()
			switch {
			case test.want == "":
				expect.NoError(t, err)
			case err == nil || !strings.HasPrefix(err.Error(), test.want) || exit.Code(err) != exit.Access:
				t.Errorf("error %v with exit code %d, want %s", err, exit.Code(err), test.want)
			}
		})
	}
}
