// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// TestTargets reads what arguments and flags name in an empty cluster.
func TestTargets(t *testing.T) {
	t.Parallel()
	const set = "apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: a}\n"
	folder := t.TempDir()
	clitest.WriteFiles(t, folder, map[string]string{
		"deep/er/set.yaml": set, "local/set.yaml": set, "local/kustomization.yaml": "resources: [set.yaml]\nnamePrefix: built-\n",
		"remote/kustomization.yaml": "resources: ['https://127.0.0.1/set.yaml']\n",
	})
	for name, test := range map[string]struct {
		args []string
		code int
		want string
		// kubectl are the arguments that are passed to kubectl.
		kubectl string
	}{
		"kind and name":           {args: []string{"cloneset/a"}, code: exit.Failed, want: "cloneset.apps.kruise.io/a not found in namespace games"},
		"a short name":            {args: []string{"asts", "a"}, code: exit.Failed, want: "statefulset.apps.kruise.io/a not found"},
		"a similar kind":          {args: []string{"clonset/a"}, code: exit.Usage, want: `kind: "clonset" is invalid; did you mean "cloneset"?`},
		"a similar plural":        {args: []string{"clonests", "-l", "a=b"}, code: exit.Usage, want: `did you mean "clonesets"?`},
		"a similar name":          {args: []string{"clone/aren"}, code: exit.Failed, want: `not found in namespace games; did you mean "cloneset/arena"?`},
		"a kind of another group": {args: []string{"statefulset.app/a"}, kubectl: "rollout restart -- statefulset.app/a"},
		"a flag of the command":   {args: []string{"cloneset/a", "--bad"}, code: exit.Usage, want: "--bad is invalid"},
		"two objects":             {args: []string{"cloneset", "a", "b"}, code: exit.Failed, want: "cloneset.apps.kruise.io/b not found"},
		"nothing":                 {code: exit.Usage, want: "an object is required: KIND/NAME, KIND NAME, KIND -l LABELS, -f FILE or -k FOLDER"},
		"no name":                 {args: []string{"cloneset"}, code: exit.Usage, want: "a name is required: cloneset NAME, or cloneset -l LABELS"},
		"an empty name":           {args: []string{"cloneset/"}, code: exit.Usage, want: `"cloneset/" is invalid: must be KIND/NAME`},
		"a kind after a name":     {args: []string{"cloneset/a", "b"}, code: exit.Usage, want: `"b" is invalid: must be KIND/NAME`},
		"a name after a kind":     {args: []string{"cloneset", "a/b"}, code: exit.Usage, want: `"a/b" is invalid: must be the name of a cloneset`},
		"labels": {
			args: []string{"cloneset", "-l", "app=a"}, want: "no matching resources found: no clonesets with the labels app=a in",
		},
		"labels and a file": {args: []string{"-f", "x.yaml", "-l", "a=b"}, code: exit.Usage, want: `--selector: "a=b" is invalid`},
		"two kinds with labels": {
			args: []string{"cloneset,asts", "-l", "a=b"}, want: "found: no clonesets, statefulsets with the labels a=b in",
		},
		"two kinds and a name": {
			args: []string{"cloneset,statefulset", "a"}, code: exit.Failed,
			want: "cloneset.apps.kruise.io/a not found in namespace games\nstatefulset.apps.kruise.io/a not found",
		},
		"a kind twice": {
			args: []string{"cloneset,clone", "a", "a"}, code: exit.Failed, want: "cloneset.apps.kruise.io/a not found in namespace games",
		},
		"an empty kind":          {args: []string{"cloneset,", "a"}, code: exit.Usage, want: `"cloneset," is invalid: must be kinds, separated by commas`},
		"a space, with labels":   {args: []string{"cloneset, asts", "-l", "a=b"}, code: exit.Usage, want: `"cloneset, asts" is invalid: must be kinds`},
		"two kinds, no name":     {args: []string{"cloneset,statefulset"}, code: exit.Usage, want: "a name is required: cloneset,statefulset NAME"},
		"kinds of both":          {args: []string{"cloneset,deployment", "--all"}, code: exit.Usage, want: `as cloneset.apps.kruise.io is: run`},
		"two other kinds":        {args: []string{"deployment,statefulset.apps", "a"}, kubectl: "rollout restart -- deployment,statefulset.apps a"},
		"a folder with folders":  {args: []string{"-f", folder + "/deep", "-R"}, code: exit.Failed, want: "cloneset.apps.kruise.io/a not found"},
		"a kustomization":        {args: []string{"-k", folder + "/local"}, code: exit.Failed, want: "cloneset.apps.kruise.io/built-a not found"},
		"a remote kustomization": {args: []string{"-k", folder + "/remote"}, code: exit.Usage, want: "is on another machine"},
		"a kustomization and a folder": {
			args: []string{"-k", folder, "-f", folder}, code: exit.Usage, want: "--kustomize: ",
		},
		"a kind of no workload":  {args: []string{"podprobemarkers.apps.kruise.io/a"}, code: exit.Usage, want: "kind: "},
		"labels and a name":      {args: []string{"cloneset/a", "-l", "app=a"}, code: exit.Usage, want: `--selector: "app=a" is invalid`},
		"wrong labels":           {args: []string{"cloneset", "-l", "a in"}, code: exit.Usage, want: `--selector: "a in" is invalid`},
		"a file that is missing": {args: []string{"-f", "missing.yaml"}, code: exit.Usage, want: "missing.yaml"},
		"a file and a name":      {args: []string{"cloneset/a", "-f", "missing.yaml"}, code: exit.Usage, want: "--filename and --kustomize: must not"},
		"all": {
			args: []string{"broadcastjob", "--all"}, want: "no matching resources found: no broadcastjobs in namespace games",
		},
		"all and a name":           {args: []string{"cloneset", "a", "--all"}, code: exit.Usage, want: `--all: must not be used with the name`},
		"all and labels":           {args: []string{"cloneset", "--all", "-l", "a=b"}, code: exit.Usage, want: "--all: must not be used with --selector"},
		"another kind":             {args: []string{"deployment/a", "-l", "x=y"}, code: exit.Usage, want: "--selector"},
		"Kubernetes' own kind":     {args: []string{"statefulsets.apps/a"}, kubectl: "rollout restart -- statefulsets.apps/a"},
		"objects of both":          {args: []string{"cloneset/a", "deployment/b"}, code: exit.Usage, want: `"deployment/b" is invalid: must be of`},
		"another kind with flags":  {args: []string{"deployment", "-l", "x=y"}, kubectl: "rollout restart --selector=x=y -- deployment"},
		"a kind without a rollout": {args: []string{"broadcastjob/a"}, code: exit.Failed, want: "broadcastjob.apps.kruise.io/a not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			api := fakeapi.Client(t, &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "arena"}}).Build()
			passed, connected, bad := "", false, false
			f := target.NewFlags(streams, "test", "rollout", "restart")
			f.Connect = func() (cluster.Connection, error) {
				connected = true
				return cluster.Connection{Client: api, Namespace: "games"}, nil
			}
			f.Check = func() error {
				if bad {
					return errors.New("--bad is invalid")
				}
				return nil
			}
			f.Kubectl = func(_ context.Context, args []string) error {
				passed = strings.Join(args, " ")
				return nil
			}
			command := &cobra.Command{RunE: func(cmd *cobra.Command, args []string) error {
				return f.Run(cmd, args, args, func(ctx context.Context, t *target.Target) error { return t.Read(ctx, t.Kind.New()) })
			}}
			f.AddTo(command)
			command.Flags().BoolVar(&f.All, "all", false, "")
			command.Flags().BoolVar(&bad, "bad", false, "")
			command.SetArgs(test.args)
			command.SetOut(out)
			command.SetErr(errOut)
			err := command.ExecuteContext(t.Context())
			expect.Equal(t, "exit code", test.code, exit.Code(err))
			expect.Equal(t, "arguments of kubectl", test.kubectl, passed)
			if code := exit.Code(err); connected && code == exit.Usage && f.Files.RequireFilenameOrKustomize() != nil {
				t.Errorf("the command has connected before it found %v", err)
			}
			// An object that is named twice is one object.
			text := strings.TrimSpace(errOut.String())
			if lines := strings.Split(text, "\n"); !strings.Contains(text, test.want) || len(lines) != len(sets.New(lines...)) {
				t.Errorf("errors %q, want %q, and no line twice", text, test.want)
			}
		})
	}
}
