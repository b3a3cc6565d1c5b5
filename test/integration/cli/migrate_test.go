// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/migrate"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// migrated runs `seamark migrate check -o json` and returns the findings as "level field", what
// could not be read, and the exit code.
func migrated(t *testing.T, config *rest.Config, args ...string) (findings, unread []string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, "seamark", "test")
	command.SetArgs(append([]string{"migrate", "check", "-o", "json", "--kubeconfig", env.Kubeconfig(t, config)}, args...))
	code = exit.Code(command.ExecuteContext(t.Context()))
	var report struct {
		Findings []migrate.Finding
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
