// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func owned(namespace, name, kind, owner, revisionLabel, revision string) *builders.PodBuilder {
	isController := true
	return builders.Pod(namespace, name).Node("node-1").Label("app", owner).Label(revisionLabel, revision).
		Owner(metav1.OwnerReference{Kind: kind, Name: owner, UID: "1", Controller: &isController})
}

// objects are a database of two revisions with a role by its marker, game servers of a Deployment,
// and a pod without a controller.
func objects() []client.Object {
	condition := corev1.PodCondition{
		Type: "db.io/primary", Status: corev1.ConditionTrue, Message: "primary since\nnoon", LastTransitionTime: metav1.NewTime(now.Add(-3 * time.Minute)),
	}
	ownedMarks := `{"f:metadata":{"f:labels":{"f:role":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"db.io/primary\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}}}}`
	return []client.Object{
		owned("shop", "db-0", "StatefulSet", "db", "controller-revision-hash", "db-6f9").Label("role", "primary").Condition(condition).
			ManagedFields(v1alpha1.FieldManager, "status", ownedMarks).Build(),
		owned("shop", "db-1", "StatefulSet", "db", "controller-revision-hash", "db-7c4").Build(),
		owned("shop", "web-5d8-x2x", "ReplicaSet", "web-5d8", "pod-template-hash", "5d8").Build(),
		owned("shop", "bare-abc", "ReplicaSet", "bare", "other", "5d8").Build(),
		builders.Pod("shop", "alone").Label(builders.GuardLabel, "delete").Build(),
		owned("games", "game-x7k2p", "CloneSet", "game", "controller-revision-hash", "game-1").Build(),
		builders.Marker("shop", "database").Selector("app", "db").
			Probe(builders.Probe("primary").Condition("db.io/primary").Label(v1alpha1.ProbeSucceeded, "role", "primary")).Build(),
	}
}

// guards are a guard of the primary, and of the pod that is alone.
func guards() *policyv1.PodDisruptionBudgetList {
	primary := builders.Guard("shop", "primary", false, "primary")
	primary.Spec.Selector.MatchExpressions[0].Key = "role"
	return &policyv1.PodDisruptionBudgetList{Items: []policyv1.PodDisruptionBudget{*primary, *builders.Guard("shop", "alone", false, "delete")}}
}

func execute(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	flags := cluster.NewFlags(streams, "test")
	c := fakeapi.Client(t, objects()...).WithLists(guards()).WithReturnManagedFields().Build()
	o := &options{IOStreams: streams, Cluster: flags, now: func() time.Time { return now }}
	o.connect = func() (cluster.Connection, error) {
		if flags.AllNamespaces {
			return cluster.Connection{Client: c}, nil
		}
		return cluster.Connection{Client: c, Namespace: "shop"}, nil
	}
	command := newCommand(o, "seamark")
	command.SilenceUsage = true
	command.SetArgs(append([]string{}, args...))
	command.SetOut(out)
	command.SetErr(errOut)
	err := command.ExecuteContext(t.Context())
	return out.String() + errOut.String(), exit.Code(err)
}

func TestTree(t *testing.T) {
	output, code := execute(t)
	want := `Deployment/web
└── revision 5d8 (1)
    └── web-5d8-x2x  Running  node-1
ReplicaSet/bare
└── bare-abc  Running  node-1
StatefulSet/db
├── revision 6f9 (1)
│   └── db-0  Running  node-1  guarded by primary 3m
│       └── database#primary  Succeeded  3m  primary since noon (node node-1 has no NodePodProbe)
│           ├── condition db.io/primary=True
│           └── label role=primary
└── revision 7c4 (1)
    └── db-1  Running  node-1
        └── database#primary  Pending  (node node-1 has no NodePodProbe)
pods without a controller
└── alone  Running  node-1  guarded by alone
`
	if diff := cmp.Diff(want, output); diff != "" || code != exit.OK {
		t.Errorf("exit code %d, output (-want +got):\n%s", code, diff)
	}
}

func TestSelect(t *testing.T) {
	for argument, want := range map[string][]string{
		"db":                             {"statefulset/db"},
		"statefulset/db":                 {"statefulset/db"},
		"StatefulSets.apps.kruise.io/db": {"statefulset/db"},
		"sts/db":                         {"statefulset/db"},
		"deploy/web":                     {"deployment/web"},
		"rs/bare":                        {"replicaset/bare"},
		"deployment/db":                  nil,
		"statefulset/dbb":                nil,
	} {
		output, code := execute(t, argument, "-o", "name")
		if want == nil {
			if code != exit.Failed || !strings.Contains(output, "not found in namespace shop") {
				t.Errorf("%s: exit code %d, output %q", argument, code, output)
			}
			continue
		}
		if got := strings.Fields(output); !cmp.Equal(got, want) || code != exit.OK {
			t.Errorf("%s: exit code %d, output %q, want %q", argument, code, got, want)
		}
	}
	if output, _ := execute(t, "statefulset/dbb"); !strings.Contains(output, `did you mean "statefulset/db"?`) {
		t.Errorf("no suggestion: %s", output)
	}
}

func TestTreeIsSafe(t *testing.T) {
	row := probestatus.Row{Marker: texttest.Hostile, Probe: "p", Problem: &probestatus.Problem{Message: texttest.Hostile}}
	row.State, row.Message = v1alpha1.ProbeFailed, texttest.Hostile
	row.Marks = []probestatus.Mark{{Kind: "label", Name: texttest.Hostile}}
	pod := Pod{Name: texttest.Hostile, Node: texttest.Hostile, Probes: []probestatus.Row{row}}
	workloads := []Workload{{Kind: texttest.Hostile, Name: texttest.Hostile, Revisions: []Revision{{Name: texttest.Hostile, Pods: []Pod{pod}}}}}
	streams := genericiooptions.NewTestIOStreamsDiscard()
	o := &options{IOStreams: streams, Cluster: cluster.NewFlags(streams, "test"), now: time.Now}
	clitest.CheckColors(t, func(out io.Writer) error {
		o.Out = out
		return o.print(workloads, "")
	})
}

func TestOutputs(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{
			[]string{
				"db", "-o", "jsonpath={.items[0].revisions[*].name} {.items[0].revisions[0].pods[0].probes[0].marks[1].value}",
			}, exit.OK, "db-6f9 db-7c4 primary",
		},
		{[]string{"-A", "-l", "app=game"}, exit.OK, "games CloneSet/game\n└── revision 1 (1)\n    └── game-x7k2p  Running  node-1\n"},
		{[]string{"-l", "app=none"}, exit.OK, "No pods found in namespace shop.\n"},
		{[]string{"-l", "a b"}, exit.Usage, `--selector: "a b" is invalid`},
		{[]string{"-o", "wrong"}, exit.Usage, `--output: "wrong" is invalid`},
	} {
		if output, code := execute(t, test.args...); code != test.code || !strings.Contains(output, test.want) {
			t.Errorf("%v: exit code %d, output %q, want %d and %q", test.args, code, output, test.code, test.want)
		}
	}
}
