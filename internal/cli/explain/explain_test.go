// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

// owned are the fields of the mark of the pod game-0.
const owned = `{"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:type":{},"f:status":{},` +
	`"f:message":{},"f:lastProbeTime":{},"f:lastTransitionTime":{}}}}}`

// objects are a cluster with the pod game-0, which is marked, and game-1, which has another label.
func objects(t *testing.T) []client.Object {
	t.Helper()
	marked := builders.Pod("games", "game-0").Label("app", "game").
		Condition(corev1.PodCondition{
			Type: "game.io/idle", Status: "True", Message: "no players", LastProbeTime: ago(3 * time.Minute), LastTransitionTime: ago(3 * time.Minute),
		}).ManagedFields(v1alpha1.FieldManager, "status", owned).Build()
	other := builders.Pod("games", "game-1").Label("app", "gane").Build()
	marker := builders.Marker("games", "game").Probe(builders.Probe("idle").Condition("game.io/idle")).Build()
	marker.Finalizers, marker.Status.ObservedGeneration = []string{v1alpha1.PodProbeMarkerFinalizer}, 1
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	npp := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Generation: 3},
		Spec:       plan.Node([]*corev1.Pod{marked, other}, []*plan.Marker{compiled}, plan.KubernetesDefaults()),
		Status:     v1alpha1.NodePodProbeStatus{ObservedGeneration: 3, ProbeReports: true},
	}
	report := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1.0"}, NodeName: "node-1",
		Pods: []seamarkv1alpha1.PodReport{{Namespace: "games", Name: "game-0", UID: "uid-game-0", Probes: []v1alpha1.ContainerProbeState{{
			Name: "game#idle", State: v1alpha1.ProbeSucceeded, Message: "no players", LastProbeTime: ago(3 * time.Minute), LastTransitionTime: ago(3 * time.Minute),
		}}}},
	}
	agent := builders.Pod("seamark-system", "seamark-agent-x").Label("app.kubernetes.io/component", "agent").
		Condition(corev1.PodCondition{Type: corev1.PodReady, Status: "True"}).Build()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "seamark-system", Name: "seamark-manager"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("manager-1"), RenewTime: &metav1.MicroTime{Time: now()}},
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "game"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	marked.Status.Conditions = append(marked.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	marked.Status.StartTime = new(ago(time.Hour))
	marked.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "5d9f"
	marked.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "game-5d9f", UID: "5d9f", Controller: new(true)}}
	invalid := builders.Marker("broken", "game").Build()
	invalid.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Foo"}}}
	return append(append(workloads(), guards()...), invalid, deployment, marked, other, marker, npp, report, agent, lease,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
}

// workloads are a DaemonSet whose only node has no pod, and an AdvancedCronJob that has run.
func workloads() []client.Object {
	set := &v1alpha1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "agent", UID: "agent", Generation: 2, CreationTimestamp: ago(time.Hour)},
		Status:     v1alpha1.DaemonSetStatus{ObservedGeneration: 2},
	}
	object := &v1alpha1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "backup", UID: "backup"}}
	object.Spec.Schedule, object.Spec.Template.JobTemplate = "@hourly", &runtime.RawExtension{Raw: []byte("{}")}
	object.Status = v1alpha1.AdvancedCronJobStatus{ObservedSchedule: "@hourly", Since: new(ago(time.Hour)), LastScheduleTime: new(ago(0))}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "games", Name: cronjob.Name(object, now()), Annotations: map[string]string{v1alpha1.ScheduledAtKey: now().Format(time.RFC3339)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object, v1alpha1.GroupVersion().WithKind("AdvancedCronJob"))},
	}}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	return []client.Object{set, object, job, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "seamark-system", Name: "seamark-workloads"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("workloads-1"), RenewTime: &metav1.MicroTime{Time: now()}},
	}}
}

// guards are a guard of the pod game-0, the policy, and budgets over game-1 and a bare pod.
func guards() []client.Object {
	budget := func(name, app string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: name}, Status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 1, ExpectedPods: 1},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}
	}
	busy := budget("busy-games", "game")
	busy.Labels, busy.Annotations = map[string]string{v1alpha1.GuardKey: "true"}, map[string]string{v1alpha1.GuardMaxDurationKey: "2h"}
	busy.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: "idle", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
		{Key: v1alpha1.GuardExemptKey, Operator: metav1.LabelSelectorOpDoesNotExist},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: guard.Policy}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = guard.Policy, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	return []client.Object{
		busy, budget("gane", "gane"), binding, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: guard.Policy}},
		builders.Pod("other", "bare").Build(),
	}
}

// result is what a command line printed and its exit code.
type result struct {
	stdout, stderr string
	code           int
}

// explainPod runs the command against a fake API server that forbids the requests that refuse
// returns true for.
func explainPod(t *testing.T, refuse func(verb string, object any) bool, args ...string) result {
	t.Helper()
	fake := fakeapi.Client(t, objects(t)...).WithReturnManagedFields().
		WithIndex(&corev1.Pod{}, "spec.nodeName", fakeapi.NodeOf).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string {
			event, _ := o.(*corev1.Event)
			return []string{event.InvolvedObject.Name}
		}).
		WithInterceptorFuncs(fakeapi.Before(func(verb string, object any) error {
			if refuse != nil && refuse(verb, object) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
			}
			return nil
		})).Build()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}
	flags := cluster.NewFlags(streams, "test")
	command := newCommand(&Options{
		IOStreams: streams, Cluster: flags, now: now,
		connect: func() (cluster.Connection, error) {
			return cluster.Connection{Client: fake, Namespace: cmp.Or(*flags.Namespace, "games")}, nil
		},
	}, "seamark")
	command.SilenceUsage = true
	command.SetArgs(args)
	command.SetErr(&errOut)
	err := command.ExecuteContext(t.Context())
	return result{out.String(), errOut.String(), exit.Code(err)}
}

func TestOutput(t *testing.T) {
	clusterWide := func(_ string, object any) bool {
		switch object.(type) {
		case *corev1.PodList, *coordinationv1.Lease, *v1alpha1.NodePodProbe, *seamarkv1alpha1.ProbeReportList, *metav1.PartialObjectMetadata:
			return true
		default:
			return false
		}
	}
	for name, test := range map[string]struct {
		args   []string
		refuse func(string, any) bool
		code   int
	}{
		"marked":           {args: []string{"game-0"}},
		"other-label":      {args: []string{"pod/game-1"}, code: exit.Failed},
		"other-label-json": {args: []string{"game-1", "-o", "json"}, code: exit.Failed},
		"marked-yaml":      {args: []string{"game-0", "-o", "yaml", "-m", "game"}},
		"namespaced":       {args: []string{"game-0"}, refuse: clusterWide},
		"daemonset":        {args: []string{"daemonset/agent"}, code: exit.Failed},
		"marker":           {args: []string{"ppm/game"}},
		"marker-developer": {args: []string{"ppm/game"}, refuse: func(verb string, object any) bool {
			_, arePods := object.(*corev1.PodList)
			return !arePods && clusterWide(verb, object)
		}},
		"deployment": {args: []string{"deploy/game"}},
		"delete":     {args: []string{"pod", "game-0", "--for", "delete"}, code: exit.Failed},
		"evict":      {args: []string{"game-1", "--for", "evict"}, code: exit.Failed},
		"drain":      {args: []string{"drain", "node-1"}, code: exit.Failed},
		"drain-json": {args: []string{"drain", "node-1", "-o", "json"}, code: exit.Failed},
		"cronjob":    {args: []string{"acj/backup", "-o", "json"}, code: exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			got := explainPod(t, test.refuse, test.args...)
			expect.Equal(t, "exit code", test.code, got.code)
			golden.Compare(t, filepath.Join("testdata", name+".txt"), got.stdout)
		})
	}
}

func TestErrors(t *testing.T) {
	pods := func(verb string, object any) bool {
		_, isPod := object.(*corev1.Pod)
		return verb == "get" && isPod
	}
	budgets := func(_ string, object any) bool {
		_, are := object.(*policyv1.PodDisruptionBudgetList)
		return are
	}
	for name, test := range map[string]struct {
		args   []string
		refuse func(string, any) bool
		code   int
		want   string
	}{
		"no pod":             {nil, nil, exit.Usage, "the name of a pod, or KIND/NAME, is required"},
		"two pods":           {[]string{"a", "b"}, nil, exit.Usage, `"b" is unexpected: must be one pod, or one KIND/NAME`},
		"a pod after a kind": {[]string{"pod", "a"}, nil, exit.Failed, `pod "a" not found in namespace games`},
		"operation":          {[]string{"a", "--for", "scale"}, nil, exit.Usage, `--for: "scale" is invalid: must be delete or evict`},
		"operation of a set": {[]string{"ads/a", "--for", "evict"}, nil, exit.Usage, `--for: "evict" is invalid: only of a pod`},
		"marker of a node":   {[]string{"drain", "a", "-m", "b"}, nil, exit.Usage, `--marker: "b" is invalid: the marks are not explained`},
		"node":               {[]string{"drain", "node-2"}, nil, exit.Failed, `node "node-2" not found; did you mean "node-1"?`},
		"empty node":         {[]string{"drain", ""}, nil, exit.Usage, `name of the pod: "" is invalid: must not be empty`},
		"budgets forbidden": {
			[]string{"drain", "node-1"}, budgets, exit.Access,
			"no permission to list poddisruptionbudgets.policy in the cluster; ask for: kubectl create clusterrolebinding seamark-view --clusterrole=view",
		},
		"not drained":        {[]string{"drain", "node-1"}, nil, exit.Failed, "node node-1 cannot be drained now"},
		"not deleted":        {[]string{"game-0", "--for", "delete"}, nil, exit.Failed, "pod game-0 cannot go now"},
		"a set after a kind": {[]string{"cloneset", "a"}, nil, exit.Usage, `must be KIND/NAME; did you mean "cloneset/a"?`},
		"misspelled kind": {
			[]string{"clonset/a"}, nil, exit.Usage, `podprobemarker, deployment, replicaset, statefulset.apps, daemonset.apps, job; did you mean "cloneset"?`,
		},
		"name of a set": {
			[]string{"agent"}, nil, exit.Failed, `pod "agent" not found in namespace games; there is a daemonset: did you mean "daemonset/agent"?`,
		},
		"empty name":          {[]string{"pod/"}, nil, exit.Usage, `name of the pod: "" is invalid: must not be empty`},
		"output":              {[]string{"a", "-o", "wide"}, nil, exit.Usage, `--output: "wide" is invalid: must be text, json or yaml`},
		"namespace":           {[]string{"a", "--seamark-namespace", ""}, nil, exit.Usage, `--seamark-namespace: "" is invalid: must not be empty`},
		"pod does not exist":  {[]string{"game-9"}, nil, exit.Failed, `pod "game-9" not found in namespace games; did you mean "game-0"?`},
		"pods forbidden":      {[]string{"game-0"}, pods, exit.Access, "no permission to get pods in namespace games"},
		"kind":                {[]string{"ingress/a"}, nil, exit.Usage, `kind: "ingress" is invalid: must be pod or one of cloneset, statefulset`},
		"deployment":          {[]string{"deploy/gam"}, nil, exit.Failed, `deployment "gam" not found in namespace games; did you mean "game"?`},
		"built-in set":        {[]string{"ds.apps/agent"}, nil, exit.Failed, `daemonset "agent" not found in namespace games`},
		"empty name of a set": {[]string{"ads/"}, nil, exit.Usage, `name of the ads: "" is invalid: must be one name`},
		"marker of a set":     {[]string{"ads/a", "-m", "b"}, nil, exit.Usage, `--marker: "b" is invalid: only pods have marks`},
		"set does not exist": {
			[]string{"DaemonSets.apps.kruise.io/agen"}, nil, exit.Failed,
			"daemonset.apps.kruise.io/agen not found in namespace games; the one of Kubernetes is daemonsets.apps/agen; did you mean \"daemonset/agent\"?",
		},
		"marker that is invalid": {[]string{"ppm/game", "-n", "broken"}, nil, exit.Failed, "PodProbeMarker game is not settled"},
		"not settled":            {[]string{"ds/agent"}, nil, exit.Failed, "DaemonSet agent is not settled"},
		"not marked":             {[]string{"game-1"}, nil, exit.Failed, "pod game-1 is not marked as it should be"},
	} {
		t.Run(name, func(t *testing.T) {
			got := explainPod(t, test.refuse, test.args...)
			if got.code != test.code || !strings.Contains(got.stderr, test.want) {
				t.Errorf("exit code %d, %q; want %d, %q", got.code, got.stderr, test.code, test.want)
			}
		})
	}
}

func TestColorsAndControlCharacters(t *testing.T) {
	x := explanation.Answer{
		Steps:      []explanation.Step{{Title: "Report", Verdict: explanation.Problem, Text: "a\n" + texttest.Hostile, Evidence: []string{texttest.Hostile}}},
		Conclusion: "Problem: " + texttest.Hostile, Next: "kubectl get " + texttest.Hostile,
	}
	plain := render(x, false)
	expect.Equal(t, fmt.Sprintf("lines in %q", plain), 5, strings.Count(plain, "\n"))
	texttest.Check(t, plain)
	texttest.CheckColored(t, render(x, true))
	if colored := render(x, true); !strings.Contains(colored, "\x1b[31mproblem ") {
		t.Errorf("no red verdict in %q", colored)
	}
}
