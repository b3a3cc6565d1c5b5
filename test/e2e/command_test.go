// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestCommandTest runs `seamark test` with all handlers. Nothing in the cluster may change.
func TestCommandTest(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "trial"}
	target := newTarget("trial", labels)
	target.Spec.Containers = append(target.Spec.Containers, newPod("shell", idle, labels).Spec.Containers[0])
	target.Spec.Containers[1].Name = "shell"
	s.Create(target)
	s.running("trial")

	cases := map[string]struct {
		handler      corev1.ProbeHandler
		result, says string
	}{
		"exec":          {shell("echo ready"), "Succeeded", "ready"},
		"exec-fails":    {shell("echo no >&2; exit 3"), "Failed", "no"},
		"exec-hangs":    {shell("sleep 60"), "Failed", "timed out after 1s"},
		"exec-absent":   {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/absent"}}}, "Error", "/absent"},
		"http":          {httpGet(intstr.FromString("http"), "/ok"), "Succeeded", "200"},
		"http-fails":    {httpGet(intstr.FromInt32(8080), "/fail"), "Failed", "500"},
		"http-redirect": {httpGet(intstr.FromInt32(8080), "/home"), "Succeeded", "200"},
		"http-refused":  {httpGet(intstr.FromInt32(1), "/"), "Failed", "connection refused"},
		"tcp":           {tcpSocket(intstr.FromString("socket")), "Succeeded", ""},
		"tcp-refused":   {tcpSocket(intstr.FromInt32(1)), "Failed", "connection refused"},
		"grpc":          {grpcHealth(9090, "up"), "Succeeded", "healthy"},
		"grpc-down":     {grpcHealth(9090, "down"), "Failed", "NOT_SERVING"},
		"grpc-refused":  {grpcHealth(1, ""), "Failed", "connection refused"},
	}
	marker := newMarker("trial", labels)
	marker.Namespace = s.Namespace
	for name, tc := range cases {
		probe := newProbe(name, tc.handler, condition("test.dev/"+name))
		if name == "exec-hangs" || name == "grpc-refused" {
			probe.Probe.TimeoutSeconds = 1
		}
		if tc.handler.Exec != nil {
			probe.ContainerName = "shell"
		}
		marker.Spec.Probes = append(marker.Spec.Probes, probe)
	}
	before := s.versions()
	items, code := s.runTest(marker, "--parallel=8")
	if code != exit.Failed || len(items) != len(cases) {
		t.Errorf("exit code %d and %d results, want %d and %d", code, len(items), exit.Failed, len(cases))
	}
	for _, item := range items {
		want := cases[item.Probe]
		if item.Result != want.result || !strings.Contains(item.Message, want.says) {
			t.Errorf("probe %s: %s %q, want %s %q", item.Probe, item.Result, item.Message, want.result, want.says)
		}
	}
	expect.Equal(t, before, s.versions(), "objects changed")
}

// result is what the test reads of a result of `seamark test`.
type result struct{ Probe, Result, Message string }

func (s *suite) runTest(marker *appsv1alpha1.PodProbeMarker, args ...string) (items []result, code int) {
	s.Helper()
	marker = marker.DeepCopy()
	marker.APIVersion, marker.Kind = appsv1alpha1.GroupVersion().String(), "PodProbeMarker"
	content, err := json.Marshal(marker)
	cluster.Must(s, err)
	file := filepath.Join(s.TempDir(), "marker.yaml")
	cluster.Must(s, os.WriteFile(file, content, 0o600))
	var out, errOut bytes.Buffer
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "seamark", "test")
	command.SetArgs(append([]string{"test", "-f", file, "-o", "json", "--kubeconfig", s.Kubeconfig()}, args...))
	code = exit.Code(command.ExecuteContext(s.Context()))
	list := struct{ Items []result }{}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		s.Fatalf("output %q: %v; standard error %q", out.String(), err, errOut.String())
	}
	return list.Items, code
}

// versions returns what distinguishes the versions of the pods and markers of the namespace. The kubelet
// may write the status of a pod at any time, so a pod has the writers and the marks instead of a version.
func (s *suite) versions() map[string]string {
	s.Helper()
	versions := map[string]string{}
	var pods corev1.PodList
	cluster.Must(s, s.Client.List(s.Context(), &pods, ctrl.InNamespace(s.Namespace)))
	for i := range pods.Items {
		pod := &pods.Items[i]
		var writers, conditions []string
		for _, each := range pod.ManagedFields {
			writers = append(writers, each.Manager+" "+each.Subresource)
		}
		for _, each := range pod.Status.Conditions {
			conditions = append(conditions, string(each.Type))
		}
		slices.Sort(writers)
		slices.Sort(conditions)
		versions["pod "+pod.Name] = fmt.Sprintf("%d %v %v %q %q", pod.Generation, pod.Labels, pod.Annotations, conditions, writers)
	}
	var markers appsv1alpha1.PodProbeMarkerList
	cluster.Must(s, s.Client.List(s.Context(), &markers, ctrl.InNamespace(s.Namespace)))
	for i := range markers.Items {
		versions["marker "+markers.Items[i].Name] = markers.Items[i].ResourceVersion
	}
	return versions
}
