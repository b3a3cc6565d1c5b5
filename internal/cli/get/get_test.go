// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/golden"
)

func TestMain(m *testing.M) {
	// The default handlers wait until the time of the last error, which is that of the machine or of another bubble of synctest.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func state(name string, s v1alpha1.ProbeState, ago time.Duration, message string) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{
		Name: name, State: s, Message: message,
		LastTransitionTime: metav1.NewTime(now.Add(-ago)), LastProbeTime: metav1.NewTime(now.Add(-ago / 2)),
	}
}

// objects are a cluster with game servers and a database in different states.
func objects(t *testing.T) []client.Object {
	t.Helper()
	condition := corev1.PodCondition{
		Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "no players",
		LastTransitionTime: metav1.NewTime(now.Add(-3 * time.Minute)), LastProbeTime: metav1.NewTime(now.Add(-time.Minute)),
	}
	owned := `{"f:metadata":{"f:labels":{"f:role":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},` +
		`"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:message":{},"f:status":{},"f:type":{}}}}}`
	pods := []*corev1.Pod{
		builders.Pod("games", "game-0").Label("app", "game").Label("role", "idle").Condition(condition).
			ManagedFields(v1alpha1.FieldManager, "status", owned).Build(),
		builders.Pod("games", "game-1").Label("app", "game").Node("node-2").Build(),
		builders.Pod("games", "game-2").Label("app", "game").Label("zone", "b").Node("").Build(),
		builders.Pod("games", "proxy").Label("app", "proxy").Build(),
		builders.Pod("shop", "db-0").Label("app", "db").Build(),
	}
	markers := []*v1alpha1.PodProbeMarker{
		builders.Marker("games", "game").
			Probe(builders.Probe("idle").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "role", "idle")).
			Probe(builders.Probe("metrics").Container("exporter").Condition("game.io/metrics")).
			Probe(builders.Probe("map").Annotation(v1alpha1.ProbeSucceeded, "map", "ready")).Build(),
		builders.Marker("shop", "database").Selector("app", "db").Probe(builders.Probe("primary").Condition("db.io/primary")).Build(),
	}
	var all []client.Object
	var compiled []*plan.Marker
	for _, m := range markers {
		c, err := plan.Compile(m)
		expect.NoError(t, err)
		compiled, all = append(compiled, c), append(all, m)
	}
	for _, node := range []string{"node-1", "node-2"} {
		var bound []*corev1.Pod
		for _, pod := range pods {
			if pod.Spec.NodeName == node {
				bound = append(bound, pod)
			}
		}
		all = append(all, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, &v1alpha1.NodePodProbe{
			ObjectMeta: metav1.ObjectMeta{Name: node, Generation: 1}, Spec: plan.Node(bound, compiled, plan.KubernetesDefaults()),
			Status: v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, ProbeReports: true},
		})
	}
	for _, pod := range pods {
		all = append(all, pod)
	}
	guard := builders.Guard("games", "idle", false, "idle")
	guard.Spec.Selector.MatchExpressions[0].Key = "role"
	return append(all, guard,
		&seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node-1.0"}, NodeName: "node-1", Pods: []seamarkv1alpha1.PodReport{
			{Namespace: "games", Name: "game-0", UID: "uid-game-0", Probes: []v1alpha1.ContainerProbeState{
				state("game#idle", v1alpha1.ProbeSucceeded, 3*time.Minute, "no players"),
				state("game#map", v1alpha1.ProbeUnknown, 50*time.Hour, ""),
			}},
			{Namespace: "shop", Name: "db-0", UID: "uid-db-0", Probes: []v1alpha1.ContainerProbeState{
				state("database#primary", v1alpha1.ProbeSucceeded, 40*24*time.Hour, "primary"),
			}},
		}},
		&seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node-2.0"}, NodeName: "node-2", Pods: []seamarkv1alpha1.PodReport{
			{Namespace: "games", Name: "game-1", UID: "uid-game-1", Probes: []v1alpha1.ContainerProbeState{
				state("game#idle", v1alpha1.ProbeFailed, 75*time.Second, "12 players\n3 spectators"),
			}, Errors: []v1alpha1.ContainerProbeError{{Name: "game#idle", Reason: v1alpha1.ProbeCannotRun, Message: "no such file"}}},
		}},
	)
}

// execute runs the command in namespace games on the fake cluster. Requests for which refuse returns
// true are forbidden.
func execute(t *testing.T, refuse func(object any) bool, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	flags := cluster.NewFlags(streams, "test")
	forbidden := func(object any) error {
		if refuse == nil || !refuse(object) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
	}
	c := fakeapi.Client(t, objects(t)...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			pod, _ := o.(*corev1.Pod)
			return []string{pod.Spec.NodeName}
		}).
		WithReturnManagedFields().
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				return errors.Join(forbidden(o), c.Get(ctx, key, o, options...))
			},
			List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
				return errors.Join(forbidden(l), c.List(ctx, l, options...))
			},
		}).Build()
	o := &options{IOStreams: streams, Cluster: flags, now: func() time.Time { return now }}
	o.connect = func() (cluster.Connection, error) {
		namespace := "games"
		if flags.AllNamespaces {
			namespace = ""
		} else if *flags.Namespace != "" {
			namespace = *flags.Namespace
		}
		return cluster.Connection{Client: c, Namespace: namespace}, nil
	}
	command := newCommand(o, "seamark")
	command.SilenceUsage = true
	command.SetArgs(append([]string{}, args...))
	command.SetOut(out)
	command.SetErr(errOut)
	err := command.ExecuteContext(t.Context())
	return out.String(), errOut.String(), exit.Code(err)
}

// isClusterScoped reports whether an ordinary developer may not read the objects.
func isClusterScoped(object any) bool {
	switch object.(type) {
	case *corev1.Pod, *corev1.PodList, *v1alpha1.PodProbeMarkerList:
		return false
	default:
		return true
	}
}

func TestGolden(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		refuse func(any) bool
		code   int
	}{
		"namespace":       {},
		"all-namespaces":  {args: []string{"-A"}},
		"wide":            {args: []string{"-o", "wide"}},
		"pod":             {args: []string{"game-0"}},
		"pod-with-kind":   {args: []string{"pod/game-1", "game-1"}},
		"marker":          {args: []string{"-A", "-m", "database"}},
		"probe":           {args: []string{"--marker", "game#idle"}},
		"node":            {args: []string{"--node", "node-2"}},
		"selector":        {args: []string{"-l", "zone=b"}},
		"states":          {args: []string{"--state", "Failed,UNKNOWN", "--no-headers"}},
		"pending":         {args: []string{"--state", "pending"}},
		"json":            {args: []string{"game-0", "-m", "game#idle", "-o", "json"}},
		"yaml":            {args: []string{"game-1", "-o", "yaml"}},
		"name":            {args: []string{"-o", "name"}},
		"jsonpath":        {args: []string{"-o", `jsonpath={range .items[*]}{.pod} {.state}{"\n"}{end}`}},
		"no-match-json":   {args: []string{"game-2", "--state", "failed", "-o", "json"}},
		"no-match":        {args: []string{"game-2", "--state", "failed"}},
		"unselected-pod":  {args: []string{"proxy"}},
		"no-markers":      {args: []string{"-n", "empty"}},
		"developer":       {args: []string{"-o", "wide"}, refuse: isClusterScoped},
		"misspelled-pod":  {args: []string{"gmae-0", "game-2"}, code: exit.Failed},
		"unknown-marker":  {args: []string{"-m", "games"}, code: exit.Failed},
		"unknown-probe":   {args: []string{"-m", "game#idel"}, code: exit.Failed},
		"nothing-allowed": {refuse: func(any) bool { return true }, code: exit.Access},
		"invalid-state":   {args: []string{"--state", "failed,down"}, code: exit.Usage},
		"invalid-output":  {args: []string{"-o", "xml"}, code: exit.Usage},
		"invalid-path":    {args: []string{"-o", "jsonpath={.items["}, code: exit.Usage},
		"invalid-marker":  {args: []string{"-m", "game/"}, code: exit.Usage},
		"invalid-labels":  {args: []string{"-l", "a in b"}, code: exit.Usage},
		"pod-of-all":      {args: []string{"-A", "game-0"}, code: exit.Usage},
		"two-namespaces":  {args: []string{"-A", "-n", "shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := execute(t, test.refuse, test.args...)
			expect.Equal(t, "exit code", test.code, code)
			golden.Compare(
				t, filepath.Join("testdata", name+".golden"), "$ seamark get "+strings.Join(test.args, " ")+"\n"+stdout+"--- standard error\n"+stderr,
			)
		})
	}
}
