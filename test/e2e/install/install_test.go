// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// crds lists the names of Seamark's CRDs.
var crds = [...]string{"podprobemarkers.apps.kruise.io", "nodepodprobes.apps.kruise.io"}

// TestLifecycle tests, upgrades, rolls back, uninstalls and reinstalls the release.
func TestLifecycle(t *testing.T) {
	s := newSuite(t)
	answers := map[string]v1alpha1.ProbeState{"good": v1alpha1.ProbeSucceeded, "bad": v1alpha1.ProbeFailed}
	s.helmTest()
	s.createPods(answers)
	s.allMarked(answers)
	s.upgradeAndRollBack(answers)
	s.failToUninstall(answers)
	s.uninstall(answers)
	s.reinstall(answers)
}

// helmTest runs helm test, which marks a pod and cleans up.
func (s *suite) helmTest() {
	s.Helper()
	out := s.helm("test", release, "--timeout", cluster.Timeout.String())
	s.Log(out)
	s.contains("helm test", out, "Phase:          Succeeded", "seamark.dev/selftest=passed", "hello from seamark-selftest-", "Seamark works.")
	s.Eventually("the objects of helm test are deleted", func(ctx context.Context) error {
		var pods corev1.PodList
		var markers v1alpha1.PodProbeMarkerList
		if err := s.Client.List(ctx, &pods, client.InNamespace(cluster.SystemNamespace), client.MatchingLabels{"app.kubernetes.io/component": "selftest"}); err != nil {
			return err
		}
		if err := s.Client.List(ctx, &markers, client.InNamespace(cluster.SystemNamespace)); err != nil {
			return err
		}
		if n := len(pods.Items) + len(markers.Items); n > 0 {
			return fmt.Errorf("%d pods and markers", n)
		}
		return nil
	})
}

// upgradeAndRollBack replaces the managers and agents twice while pods are marked. A probe
// changes its result during each rollout.
func (s *suite) upgradeAndRollBack(answers map[string]v1alpha1.ProbeState) {
	s.Helper()
	s.roll("good", answers, "upgrade", release, "charts/seamark", "--reset-then-reuse-values",
		"--set", "manager.config.logging.verbosity=1", "--set", "agent.config.logging.verbosity=1",
		"--set", "agent.config.execConcurrency=7", "--set", "manager.podLabels.seamark\\.dev/test=upgrade",
		"--set", "policies.markerAuthor.enforcement=Deny", "--set", "ui.enabled=true")
	s.rejectAuthor()
	s.servePage()
	s.roll("bad", answers, "rollback", release)
}

// roll replaces the programs with helm, changes the pod's result during the rollout, and checks
// that all marks are correct at all times.
func (s *suite) roll(pod string, answers map[string]v1alpha1.ProbeState, args ...string) {
	s.Helper()
	next, code := v1alpha1.ProbeFailed, 1
	if answers[pod] == v1alpha1.ProbeFailed {
		next, code = v1alpha1.ProbeSucceeded, 0
	}
	before := s.programs()
	w := s.watch(maps.Clone(answers), pod, next)
	s.helm(args...)
	s.Kubectl("exec", pod, "--", "sh", "-c", fmt.Sprintf("echo 'exit %d' > /tmp/probe", code))
	for _, object := range []string{"deployment/seamark-manager", "daemonset/seamark-agent"} {
		s.Kubectl("rollout", "status", "--namespace", cluster.SystemNamespace, "--timeout", cluster.Timeout.String(), object)
	}
	s.checkReplaced(args[0], before)
	answers[pod] = next
	s.allMarked(answers)
	s.check(args[0], w)
}

// rejectAuthor creates a marker with an exec probe as a user without the right to exec.
func (s *suite) rejectAuthor() {
	s.Helper()
	for _, args := range [][]string{
		{"create", "role", "author", "--verb=create", "--resource=podprobemarkers.apps.kruise.io"},
		{"create", "rolebinding", "author", "--role=author", "--user=ann"},
	} {
		s.Kubectl(args...)
	}
	write := []string{"create", "--dry-run=server", "-f", "examples/first-marker/marker.yaml"}
	s.Kubectl(write...)
	s.Eventually("ann is rejected", func(ctx context.Context) error {
		out, err := s.TryKubectl(ctx, append(write, "--as=ann")...)
		if err != nil && strings.Contains(out, `user "ann" cannot create pods/exec`) {
			return nil
		}
		return fmt.Errorf("response %q", out)
	})
}

// failToUninstall removes the managers' rights, so that helm uninstall fails, and then repairs
// the release.
func (s *suite) failToUninstall(answers map[string]v1alpha1.ProbeState) {
	s.Helper()
	cluster.Must(s, s.Client.Delete(s.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "seamark-manager"}}))
	out, err := s.tryHelm(s.Context(), "uninstall", release, "--timeout", cluster.Timeout.String())
	if err == nil {
		s.Errorf("helm uninstall succeeded without the rights to clean up")
	}
	s.contains("helm uninstall", out, "uninstall is not complete, run it again", "forbidden")
	s.allMarked(answers)
	// A release whose deletion failed can't be upgraded, but it can be rolled back to itself.
	var history []struct{ Revision int }
	cluster.Must(s, json.Unmarshal([]byte(s.helm("history", release, "--max", "1", "-o", "json")), &history))
	s.helm("rollback", release, strconv.Itoa(history[0].Revision), "--wait", "--timeout", cluster.Timeout.String())
	s.allMarked(answers)
}

// uninstall uninstalls the release and checks what remains.
func (s *suite) uninstall(answers map[string]v1alpha1.ProbeState) {
	s.Helper()
	out := s.helm("uninstall", release, "--wait", "--timeout", (2 * cluster.Timeout).String())
	s.Log(out)
	s.contains("helm uninstall", out, "Removed the marks of", "Kept the CRDs", "podprobemarkers.apps.kruise.io",
		"Scaled Deployment seamark-system/seamark-workloads to 0.", "Kept the CRDs of CloneSets and StatefulSets")
	for name := range answers {
		pod := &corev1.Pod{}
		cluster.Must(s, s.Client.Get(s.Context(), s.Key(name), pod))
		if err := unmarked(pod); err != nil {
			s.Error(err)
		}
	}
	var markers v1alpha1.PodProbeMarkerList
	cluster.Must(s, s.Client.List(s.Context(), &markers))
	for i := range markers.Items {
		if len(markers.Items[i].Finalizers) > 0 {
			s.Errorf("marker %s has finalizers %v", markers.Items[i].Name, markers.Items[i].Finalizers)
		}
	}
	cluster.Must(s, s.Client.Get(s.Context(), s.Key("install"), &v1alpha1.PodProbeMarker{}))
	var plans v1alpha1.NodePodProbeList
	cluster.Must(s, s.Client.List(s.Context(), &plans))
	if len(plans.Items) > 0 {
		s.Errorf("%d NodePodProbes remain", len(plans.Items))
	}
	var reports seamarkv1alpha1.ProbeReportList
	cluster.Must(s, s.Client.List(s.Context(), &reports))
	if len(reports.Items) > 0 {
		s.Errorf("%d ProbeReports remain", len(reports.Items))
	}
	s.checkNothingLeft()
}

// checkNothingLeft checks all kinds of objects that the chart installs.
func (s *suite) checkNothingLeft() {
	s.Helper()
	for _, args := range [][]string{
		{"clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings," +
			"mutatingwebhookconfigurations,validatingwebhookconfigurations"},
		{"--namespace", cluster.SystemNamespace, "deployments,daemonsets,jobs,configmaps,secrets,services,serviceaccounts,roles,rolebindings,leases," +
			"poddisruptionbudgets,networkpolicies,resourcequotas"},
	} {
		left := s.Kubectl(append([]string{"get", "-o", "name"}, args...)...)
		for _, name := range strings.Fields(left) {
			if strings.Contains(name, "seamark") {
				s.Errorf("%s remains", name)
			}
		}
	}
}

// reinstall installs over the CRDs and markers that remain, once with another owner of the CRDs.
func (s *suite) reinstall(answers map[string]v1alpha1.ProbeState) {
	s.Helper()
	s.setOwner("kruise")
	out, err := s.tryHelm(s.Context(), "install", release, "charts/seamark", "-f", s.values, "--dry-run=server")
	if err == nil {
		s.Errorf("helm install adopted the CRDs of another release")
	}
	s.contains("helm install", out, "CustomResourceDefinition", "invalid ownership metadata")
	s.install("--set", "crds.install=false")
	s.allMarked(answers)
	s.setOwner(release)
	s.helm("uninstall", release, "--wait", "--timeout", (2 * cluster.Timeout).String())
	s.install()
	s.allMarked(answers)
}

// setOwner sets the release that owns the CRDs.
func (s *suite) setOwner(name string) {
	s.Helper()
	for _, crd := range crds {
		object := &apiextensionsv1.CustomResourceDefinition{}
		object.Name = crd
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"meta.helm.sh/release-name":%q}}}`, name)
		cluster.Must(s, s.Client.Patch(s.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
}
