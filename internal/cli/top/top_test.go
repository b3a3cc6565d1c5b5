// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestPrintGroups(t *testing.T) {
	groups := []history.Group{
		{Namespace: "game", Marker: "server", Node: "n1", Probes: 3, NotRun: 1, PerHour: 0.25, Worst: "game-0 idle", Message: "CannotRun: no\nprogram", Guard: "busy 5m"},
		{Namespace: "game", Marker: "idle", Node: "node-2", Probes: 12, Failed: 2, Worst: "game-7 idle", Message: strings.Repeat("x", 200)},
	}
	want := "NAMESPACE  MARKER  NODE    PROBES  NOT RUN  SLOW  CHANGES/H  FAILED  WORST\n" +
		"game       server  n1      3       1        0     0.2        0       game-0 idle (guarded by busy 5m): CannotRun: no program\n" +
		"game       idle    node-2  12      0        0     0.0        2       game-7 idle: " + strings.Repeat("x", 80) + "\n" +
		"7 more: use --rows\n"
	var out bytes.Buffer
	expect.NoError(t, printGroups(&out, groups, 7))
	expect.Equal(t, "table", want, out.String())
}

func TestPrintSets(t *testing.T) {
	done := model.Set{
		SetID: model.SetID{Namespace: "game", Kind: "DaemonSet", Name: "log"}, Desired: 2, Updated: 2, Available: 2,
		Phase: "Complete", Message: texttest.Hostile, Complete: true,
	}
	o := Options{Rows: 3}
	sets, more := o.firstSets([]model.Set{topSet("b", false), done, topSet("c", false), topSet("a", true)})
	want := "\nNAMESPACE  SET         UPDATED  AVAILABLE  PHASE        MESSAGE\n" +
		"games      cloneset/a  1/3      2/3        Progressing  1 of 3 pods are updated\n" +
		"games      cloneset/b  1/3      2/3        Progressing  1 of 3 pods are updated\n" +
		"games      cloneset/c  1/3      2/3        Progressing  1 of 3 pods are updated\n" +
		"1 more: use --rows\n"
	var out bytes.Buffer
	expect.NoError(t, printSets(&out, sets, more))
	expect.NoError(t, printSets(&out, nil, 0))
	expect.Equal(t, "table", want, out.String())
	o.Rows = 2 * model.MaxSets
	sets, more = o.firstSets(slices.Repeat([]model.Set{topSet("a", false)}, model.MaxSets+2))
	last := "2 more: at most 1000 sets are shown"
	expect.Equal(t, "last line", []string{last}, setLines(sets, more, false)[model.MaxSets+2:])
	colored := clitest.CheckColors(t, func(out io.Writer) error { return printSets(out, []model.Set{topSet("a", true), done}, 0) })
	for _, part := range []string{"  \x1b[31mProgressing\x1b[m  1 of", "  \x1b[32mComplete\x1b[m     "} {
		if !strings.Contains(colored, part) {
			t.Errorf("%q does not contain %q", colored, part)
		}
	}
}

// Kinds that are not installed are not named, and those that may not be listed are.
func TestReadSets(t *testing.T) {
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	o := Options{IOStreams: streams}
	api := fakeapi.Client(t, &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "arena", Generation: 1}}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			switch list.(type) {
			case *v1alpha1.DaemonSetList:
				return apierrors.NewForbidden(schema.GroupResource{Resource: "daemonsets"}, "", nil)
			case *v1beta1.StatefulSetList:
				return &meta.NoKindMatchError{}
			}
			return c.List(ctx, list, opts...)
		}}).Build()
	sets, err := o.readSets(t.Context(), api, "games")
	expect.NoError(t, err)
	expect.Equal(t, "sets", []string{"CloneSet games/arena NotObserved"}, []string{sets[0].String() + " " + sets[0].Phase})
	const warning = "Warning: some sets are not shown: no permission to list daemonsets.apps.kruise.io in namespace games\n"
	expect.Equal(t, "warning", warning, errOut.String())
	o.Node = "node-1"
	sets, err = o.readSets(t.Context(), api, "games")
	expect.NoError(t, err)
	expect.Equal(t, "sets of a node", 0, len(sets))
}

// Sets that may not be watched are not shown as they were listed.
func TestFollowSets(t *testing.T) {
	const inNamespace = " in namespace games\n"
	for name, test := range map[string]struct {
		refused []string
		sets    int
		want    string
	}{
		"all may be watched": {sets: 2},
		"one kind":           {[]string{"CloneSet"}, 1, "Warning: some sets are not shown: no permission to watch clonesets.apps.kruise.io" + inNamespace},
		"all kinds": {
			[]string{"CloneSet", "DaemonSet", "StatefulSet"}, 0,
			"Warning: sets are not shown: no permission to watch clonesets.apps.kruise.io, daemonsets.apps.kruise.io, statefulsets.apps.kruise.io" + inNamespace,
		},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, _, errOut := genericiooptions.NewTestIOStreams()
			o := Options{IOStreams: streams}
			meta := metav1.ObjectMeta{Namespace: "games", Name: "arena"}
			api := fakeapi.Client(t, &v1alpha1.CloneSet{ObjectMeta: meta}, &v1alpha1.DaemonSet{ObjectMeta: meta}).
				WithInterceptorFuncs(interceptor.Funcs{
					Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
						for _, kind := range test.refused {
							if strings.Contains(fmt.Sprintf("%T", list), "."+kind) {
								return nil, apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", nil)
							}
						}
						return c.Watch(ctx, list, opts...)
					},
				}).Build()
			sets, stop, err := o.followSets(t.Context(), cluster.Connection{Client: api, Namespace: "games"}, nil)
			expect.NoError(t, err)
			defer stop()
			expect.Equal(t, "sets", test.sets, len(sets()))
			expect.Equal(t, "warning", test.want, errOut.String())
		})
	}
}

func TestFlags(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	flags := cluster.NewFlags(streams, "test")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"rows":   {(&Options{Flags: flags, Window: 1, Output: "text"}).Validate(), "--rows: 0 is invalid: must be 1 or more"},
		"window": {(&Options{Flags: flags, Rows: 1, Output: "text"}).Validate(), "--window: 0s is invalid: must be more than 0"},
		"output": {(&Options{Flags: flags, Rows: 1, Window: 1, Output: "svg"}).Validate(), `--output: "svg" is invalid: must be text, json or yaml`},
	} {
		t.Run(name, func(t *testing.T) {
			if test.err == nil || test.err.Error() != test.want {
				t.Errorf("error %v, want %s", test.err, test.want)
			}
		})
	}
}

func TestReportIsSafe(t *testing.T) {
	groups := []history.Group{{Marker: "m", Worst: texttest.Hostile, Message: texttest.Hostile, Guard: texttest.Hostile}}
	clitest.CheckReport(t, func(out io.Writer, format printing.Report) error {
		return format.Print(out, groups, func(out io.Writer) error { return printGroups(out, groups, 0) })
	})
	groups[0].NotRun, groups[0].Slow, groups[0].Probes = 2, 0, 3
	colored := clitest.CheckColors(t, func(out io.Writer) error { return printGroups(out, groups, 0) })
	if want := "  3       \x1b[31m2\x1b[m        0     0.0        0       "; !strings.Contains(colored, want) {
		t.Errorf("%q does not contain %q", colored, want)
	}
}
