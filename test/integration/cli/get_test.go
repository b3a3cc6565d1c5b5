// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/internal/cli/timeline/chart"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

var blanks = regexp.MustCompile(` +`)

// columns returns the lines of a table with single blanks and without durations.
func columns(table, node string) []string {
	table = strings.ReplaceAll(table, node, "NODE")
	table = regexp.MustCompile(`\b\d+[smh]\b`).ReplaceAllString(table, "TIME")
	return strings.Split(strings.TrimSpace(blanks.ReplaceAllString(table, " ")), "\n")
}

func TestGet(t *testing.T) {
	w := newWorld(t)
	// The manager copies errors of the reports into the status of the marker.
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "game"}}
	expect.NoError(t, shared.Client.Status().Patch(t.Context(), marker, env.MergePatch(
		`{"status":{"observedGeneration":1,"podErrors":[{"pod":"game-1","probe":"idle","reason":"CannotRun","message":"no such file"}]}}`)))
	header := "POD PROBE CONTAINER STATE SINCE MESSAGE NODE LAST PROBE SOURCE MARKS GUARD"
	hint := "Hint: no permission to list probereports.seamark.dev in the cluster: states come from the marks of pods; ask for: " +
		"kubectl create clusterrolebinding seamark-view-states --clusterrole=seamark-view-states --user=developer\n"
	denied := "Error: no permission to list podprobemarkers.apps.kruise.io in namespace " + w.namespace + "; ask for: kubectl create rolebinding " +
		"seamark-view -n " + w.namespace + " --clusterrole=view "
	for name, test := range map[string]struct {
		args   []string
		want   []string
		stderr string
		code   int
	}{
		"administrator": {[]string{"get", "-o", "wide"}, []string{
			header,
			"game-0 game#idle main Succeeded TIME no players NODE TIME report game.io/idle=True,role=idle idle TIME",
			"game-1 game#idle main Pending - - NODE - - - -",
		}, "", exit.OK},
		"developer": {[]string{"get", "-o", "wide", "--as=" + developer}, []string{
			header,
			"game-0 game#idle main Succeeded TIME no players NODE TIME condition game.io/idle=True,role=idle -",
			"game-1 game#idle main Pending - cannot be run: no such file NODE - - - -",
		}, hint, exit.OK},
		"viewer of states": {[]string{"get", "-o", "wide", "--as=" + viewer}, []string{
			header,
			"game-0 game#idle main Succeeded TIME no players NODE TIME report game.io/idle=True,role=idle -",
			"game-1 game#idle main Pending - - NODE - - - -",
		}, "", exit.OK},
		"by node":                  {[]string{"get", "--node", w.node, "--state=succeeded", "-o", "name"}, []string{"pod/game-0"}, "", exit.OK},
		"user without permissions": {[]string{"get", "--as=nobody"}, []string{""}, denied + "--user=nobody\n", exit.Access},
		"ServiceAccount":           {[]string{"get", "--as=system:serviceaccount:games:ci"}, []string{""}, denied + "--serviceaccount=games:ci\n", exit.Access},
		"hostile name":             {[]string{"get", `--as=<a> "b" '$(id)' &amp;`}, []string{""}, denied + `'--user=<a> "b" '\''$(id)'\'' &amp;'` + "\n", exit.Access},
		"no API server":            {[]string{"get", "--server=https://127.0.0.1:1"}, []string{""}, "connection refused", exit.Access},
		"unknown context":          {[]string{"get", "--context=none"}, []string{""}, `context "none" does not exist`, exit.Access},
		"completion of pods":       {[]string{"__complete", "get", "game-0", "game", "--as=" + developer}, nil, "", exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			if test.args[0] == "__complete" {
				w.complete(t)
				return
			}
			stdout, stderr, code := w.run(t, test.args...)
			expect.Equal(t, "output", test.want, columns(stdout, w.node))
			if code != test.code || !strings.Contains(stderr, test.stderr) || (test.stderr == "") != (stderr == "") {
				t.Errorf("exit code %d, want %d; standard error %q, want %q", code, test.code, stderr, test.stderr)
			}
		})
	}
}

// complete checks what a shell completes for a developer.
func (w world) complete(t *testing.T) {
	t.Helper()
	flags := []string{"--kubeconfig=" + w.kubeconfig, "--namespace=" + w.namespace, "--as=" + developer}
	for typed, want := range map[string][]string{
		"game-0 game":  {"game-1"},
		"--marker g":   {"game"},
		"--state fai":  {"failed"},
		"--state=un":   {"unknown"},
		"--output js":  {"wide", "json", "yaml", "name", "jsonpath=", "go-template="},
		"--node node-": nil,
	} {
		stdout := w.completions(t, append(flags, strings.Fields(typed)...))
		expect.Equal(t, fmt.Sprintf("completion of %q", typed), want, stdout)
	}
}

// migrated runs `seamark migrate check -o json` and returns the findings as "level field", what
// could not be read, and the exit code.
func migrated(t *testing.T, config *rest.Config, args ...string) (findings, unread []string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, "seamark", "test")
	command.SetArgs(append([]string{"migrate", "check", "-o", "json", "--kubeconfig", env.Kubeconfig(t, config)}, args...))
	code = exit.Code(command.ExecuteContext(t.Context()))
	var report struct {
		Findings []migration.Finding
		Unread   []string
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("output is not JSON: %v\n%s%s", err, stdout.String(), stderr.String())
	}
	for _, f := range report.Findings {
		findings = append(findings, string(f.Level)+" "+f.Object()+" "+f.Field)
	}
	return findings, report.Unread, code
}

// TestMigrateCheck checks a cluster with the CRDs of OpenKruise.
func TestMigrateCheck(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.UpstreamCRDs())
	game := e.Namespace(t)
	marker := builders.Marker(game, "worker").Unsaved().Selector("app", "worker").Probe(
		builders.Probe("idle").Container("worker").Label(v1alpha1.ProbeSucceeded, "idle", "yes").
			Handler(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "example.com", Port: intstr.FromInt32(80)}})).Build()
	marker.Spec.Probes[0].Probe.PeriodSeconds, marker.Spec.Probes[0].Probe.FailureThreshold = 0, 0
	expect.NoError(t, e.Client.Create(t.Context(), marker))
	node(t, e, "virtual", map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet})
	pod := builders.Pod(game, "worker-0").Unsaved().Label("app", "worker").Label("idle", "yes").Node("virtual").Container("worker").Build()
	if _, err := env.CreatePod(t.Context(), e.Client, pod); err != nil {
		t.Fatal(err)
	}

	object := "PodProbeMarker " + game + "/worker "
	changes := []string{
		"changes " + object + "label idle",
		"changes " + object + "spec.probes[0].probe",
		"changes " + object + "spec.probes[0].probe.httpGet.host",
	}
	findings, unread, code := migrated(t, e.Config)
	if want := slices.Concat([]string{"blocks " + object}, changes); code != exit.Failed || len(unread) != 0 || !slices.Equal(findings, want) {
		t.Errorf("exit code %d, unread %q, findings %q, want %q", code, unread, findings, want)
	}
	after := &v1alpha1.PodProbeMarker{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(marker), after))
	if after.ResourceVersion != marker.ResourceVersion {
		t.Error("the command changed the marker")
	}

	// A developer can read the namespace only: whether the node is virtual is not known.
	e.Grant(t, game, env.UserSubject("dev"), rbacv1.PolicyRule{
		APIGroups: []string{"", v1alpha1.GroupName}, Verbs: []string{"list"},
		Resources: []string{"pods", "podprobemarkers", "clonesets", "statefulsets", "daemonsets", "advancedcronjobs", "broadcastjobs", "imagepulljobs"},
	})
	findings, unread, code = migrated(t, e.User(t, "dev"), "-n", game)
	if want := []string{"nodes", "customresourcedefinitions"}; code != exit.Access || !slices.Equal(unread, want) || !slices.Equal(findings, changes) {
		t.Errorf("as a developer: exit code %d, unread %q, findings %q, want %d, %q, %q", code, unread, findings, exit.Access, want, changes)
	}
}

// historyOf runs a command and returns its output, its warnings and the exit code.
func historyOf(t *testing.T, config *rest.Config, args ...string) (out, warnings string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, "seamark", "test")
	command.SetArgs(append(args, "--kubeconfig", env.Kubeconfig(t, config)))
	code = exit.Code(command.ExecuteContext(t.Context()))
	return stdout.String(), stderr.String(), code
}

// TestHistory reads states and events with `seamark top` and `seamark timeline`.
func TestHistory(t *testing.T) {
	t.Parallel()
	e := env.Start(t)
	game := e.Namespace(t)
	probed(t, e, game)

	check := func(who string, config *rest.Config, phases []history.Phase, warnings ...string) {
		t.Helper()
		out, stderr, code := historyOf(t, config, "timeline", "game-0", "-n", game, "-o", "json")
		var timeline chart.Timeline
		if err := json.Unmarshal([]byte(out), &timeline); err != nil || code != exit.OK || len(timeline.Lines) != 1 {
			t.Fatalf("%s: exit code %d, %v:\n%s%s", who, code, err, out, stderr)
		}
		var got []history.Phase
		for _, span := range timeline.Lines[0].Spans {
			got = append(got, span.Phase)
		}
		if !slices.Equal(got, phases) {
			t.Errorf("%s: phases %q, want %q", who, got, phases)
		}
		for _, warning := range warnings {
			if !strings.Contains(stderr, warning) {
				t.Errorf("%s: the warnings do not contain %q:\n%s", who, warning, stderr)
			}
		}
	}
	all := []history.Phase{history.Succeeded, history.Failed}
	check("administrator", e.Config, all)
	if svg, _, code := historyOf(t, e.Config, "timeline", "game-0", "-n", game, "-o", "svg"); code != exit.OK || !strings.HasPrefix(svg, "<svg ") {
		t.Errorf("exit code %d for an SVG:\n%s", code, svg)
	}
	if _, stderr, code := historyOf(t, e.Config, "timeline", "gmae-0", "-n", game); code == exit.OK || !strings.Contains(stderr, "game-0") {
		t.Errorf("exit code %d for a pod that does not exist, and no suggestion:\n%s", code, stderr)
	}

	out, stderr, code := historyOf(t, e.Config, "top", "-n", game, "-o", "json")
	var top struct {
		Groups []history.Group
	}
	if err := json.Unmarshal([]byte(out), &top); err != nil || code != exit.OK || len(top.Groups) != 1 {
		t.Fatalf("exit code %d, %v:\n%s%s", code, err, out, stderr)
	}
	if g := top.Groups[0]; g.Marker != "game" || g.Node != "n1" || g.Probes != 1 || g.NotRun != 0 || g.Failed != 1 || g.PerHour != 2 {
		t.Errorf("group %+v, want one failed probe with 2 changes per hour", g)
	}

	pods := rbacv1.PolicyRule{APIGroups: []string{"", v1alpha1.GroupName}, Resources: []string{"pods", "podprobemarkers"}, Verbs: []string{"get", "list"}}
	events := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}}
	e.Grant(t, game, env.UserSubject("dev"), pods, events)
	check("developer", e.User(t, "dev"), all, "states come from the marks of pods")
	e.Grant(t, game, env.UserSubject("blind"), pods)
	check("without events", e.User(t, "blind"), []history.Phase{history.NotKnown}, "changes of states are not known")
}

// probed creates a pod whose probe has succeeded and then failed.
func probed(t *testing.T, e *env.Env, namespace string) {
	t.Helper()
	create := func(object client.Object) {
		t.Helper()
		expect.NoError(t, e.Client.Create(t.Context(), object))
	}
	node(t, e, "n1", nil)
	marker := builders.Marker(namespace, "game").Unsaved().Selector("app", "game").
		Probe(builders.Probe("idle").Container("main").Condition("game.io/idle")).Build()
	create(marker)
	pod := builders.Pod(namespace, "game-0").Unsaved().Label("app", "game").Node("n1").Ran().IP("10.0.0.1").Build()
	pod, err := env.CreatePod(t.Context(), e.Client, pod)
	expect.NoError(t, err)
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	npp := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: plan.Node([]*corev1.Pod{pod}, []*plan.Marker{compiled}, plan.KubernetesDefaults()),
	}
	if len(npp.Spec.PodProbes) != 1 {
		t.Fatalf("plan %+v, want one pod", npp.Spec)
	}
	planned := npp.Spec.PodProbes[0].Probes[0]
	create(npp)
	patchStatus(t, e.Client, npp, `{"status":{"observedGeneration":1,"probeReports":true,"pods":1,"probes":1}}`)
	now := time.Now().Truncate(time.Second)
	succeeded, failed := metav1.NewTime(now.Add(-30*time.Minute)), metav1.NewTime(now.Add(-10*time.Minute))
	create(&seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: "n1.0"}, NodeName: "n1",
		Pods: []seamarkv1alpha1.PodReport{{Namespace: namespace, Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{{
			Name: planned.Name, Plan: planned.Plan, State: v1alpha1.ProbeFailed, LastProbeTime: failed, LastTransitionTime: failed, Message: "busy",
		}}}},
	})
	for reason, at := range map[string]metav1.Time{v1alpha1.EventReasonProbeSucceeded: succeeded, v1alpha1.EventReasonProbeFailed: failed} {
		create(&corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "game-0." + strings.ToLower(reason)},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: pod.Name, UID: pod.UID},
			Source:         corev1.EventSource{Component: v1alpha1.EventSourceComponent},
			Reason:         reason, Message: planned.Name + ": x", Count: 1, FirstTimestamp: at, LastTimestamp: at, Type: corev1.EventTypeNormal,
		})
	}
}
