// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
	"github.com/seamark-dev/seamark/test/kubeconfig"
	"github.com/seamark-dev/seamark/test/kubelet"
	"github.com/seamark-dev/seamark/test/process"
)

// TestHelmWaitsForSets installs a chart with a CloneSet, and upgrades it to an image whose containers never become ready, and to one
// whose containers do.
func TestHelmWaitsForSets(t *testing.T) {
	e := servers.Parallel(t)
	w := &world{World: env.NewWorld(t, e)}
	t.Cleanup(w.clean)
	program.Grant(t, e)
	env.RunKubelets(t, kubelet.Options{
		Config: e.Config, Namespace: w.Namespace, Failed: func(err error) { t.Error(err) },
		Ready: func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image != "image:broken" },
	})
	w.start()
	helm, err := process.Built("helm", "test-integration")
	w.Must(err)
	dir := t.TempDir()
	w.Must(kubeconfig.Write(filepath.Join(dir, "config"), e.Config))
	for name, text := range map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"chart/templates/set.yaml": `apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 3
  progressDeadlineSeconds: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: {{ .Values.image }}}]}
`,
	} {
		path := filepath.Join(dir, name)
		w.Must(os.MkdirAll(filepath.Dir(path), 0o755))
		w.Must(os.WriteFile(path, []byte(text), 0o600))
	}
	upgrade := func(image string) (string, error) {
		command := exec.CommandContext(w.Context(), helm, //nolint:gosec // The program of the build.
			"upgrade", "--install", "web", filepath.Join(dir, "chart"), "--namespace", w.Namespace, "--set", "image="+image, "--wait", "--timeout", "60s")
		command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "config"), "HOME="+dir)
		output, err := command.CombinedOutput()
		return string(output), err
	}
	for _, step := range []struct{ image, says string }{{"image:1", ""}, {"image:broken", "has timed out progressing"}, {"image:2", ""}} {
		output, err := upgrade(step.image)
		if (err == nil) != (step.says == "") || !strings.Contains(output, step.says) {
			t.Fatalf("helm upgrade to %s: %v, want the message %q: %s", step.image, err, step.says, output)
		}
		set := &v1alpha1.CloneSet{ObjectMeta: w.Meta("web")}
		w.Get(set)
		if step.says == "" && (set.Status.ObservedGeneration != set.Generation || set.Status.UpdatedAvailableReplicas != 3) {
			t.Errorf("helm returned with the status %+v", set.Status)
		}
		t.Logf("helm upgrade to %s: %v: %s", step.image, err, output)
	}
}
