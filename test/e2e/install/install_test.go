// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/process"
)

// crds lists the names of Seamark's CRDs.
var crds = [...]string{"podprobemarkers.apps.kruise.io", "nodepodprobes.apps.kruise.io"}

// TestLifecycle tests the installed release, uninstalls and installs it, and upgrades it to other values.
// A watch compares all versions of the pods.
func TestLifecycle(t *testing.T) {
	s := newSuite(t)
	s.helmTest()
	u := &upgrade{suite: s}
	u.createUpgradePods()
	u.history = s.watchHistory()
	u.reached("installed release")
	u.failToUninstall()
	u.uninstall()
	u.reinstall()
	s.install()
	u.reached("installed again")
	u.forget()
	u.step("upgrade to other values", "upgrade", release, "charts/seamark", "-f", u.values, "--force-conflicts",
		"--set", "agent.config.execConcurrency=32",
		"--set", "policies.markerAuthor.enforcement=Deny",
		"--set", "featureGates.EnablePodProbeMarkerOnServerless=true",
		// The default is too short for a loaded machine.
		"--set", "serverless.webhook.timeoutSeconds=20")
	u.rejectAuthor()
	u.settled("some time later")
	s.serverless()
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
		if err := s.Client.List(
			ctx, &pods, client.InNamespace(cluster.SystemNamespace), client.MatchingLabels{"app.kubernetes.io/component": "selftest"},
		); err != nil {
			return err
		}
		if err := s.Client.List(ctx, &markers, client.InNamespace(cluster.SystemNamespace)); err != nil {
			return err
		}
		n := len(pods.Items) + len(markers.Items)
		return await.ErrorIf(n > 0, "%d pods and markers", n)
	})
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
func (u *upgrade) failToUninstall() {
	u.Helper()
	cluster.Must(u, u.Client.Delete(u.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "seamark-manager"}}))
	out, err := u.tryHelm(u.Context(), "uninstall", release, "--timeout", cluster.Timeout.String())
	if err == nil {
		u.Errorf("helm uninstall succeeded without the rights to clean up")
	}
	u.contains("helm uninstall", out, "uninstall is not complete, run it again", "forbidden")
	u.reached("failed uninstall")
	// A release whose deletion failed can't be upgraded, but it can be rolled back to itself.
	var history []struct{ Revision int }
	cluster.Must(u, json.Unmarshal([]byte(u.helm("history", release, "--max", "1", "-o", "json")), &history))
	u.helm("rollback", release, strconv.Itoa(history[0].Revision), "--wait", "--timeout", cluster.Timeout.String())
	u.reached("repaired release")
}

// uninstall uninstalls the release and checks what remains.
func (u *upgrade) uninstall() {
	u.Helper()
	out := u.helm("uninstall", release, "--wait", "--timeout", (2 * cluster.Timeout).String())
	u.Log(out)
	u.contains("helm uninstall", out, "Removed the marks of", "Kept the CRDs", "podprobemarkers.apps.kruise.io",
		"Scaled Deployment seamark-system/seamark-workloads to 0.", "Kept the CRDs of sets and jobs")
	for _, p := range u.pods {
		pod := &corev1.Pod{}
		cluster.Must(u, u.Client.Get(u.Context(), u.Key(p.name), pod))
		if marks := upgradeMarks(pod); len(marks) > 0 || mark.Entry(pod.ManagedFields) != nil {
			u.Errorf("pod %s has the marks %q, and the managed fields %v", p.name, marks, pod.ManagedFields)
		}
	}
	var markers v1alpha1.PodProbeMarkerList
	cluster.Must(u, u.Client.List(u.Context(), &markers))
	for i := range markers.Items {
		if len(markers.Items[i].Finalizers) > 0 {
			u.Errorf("marker %s has finalizers %v", markers.Items[i].Name, markers.Items[i].Finalizers)
		}
	}
	cluster.Must(u, u.Client.Get(u.Context(), u.Key("exec"), &v1alpha1.PodProbeMarker{}))
	var plans v1alpha1.NodePodProbeList
	cluster.Must(u, u.Client.List(u.Context(), &plans))
	if len(plans.Items) > 0 {
		u.Errorf("%d NodePodProbes remain", len(plans.Items))
	}
	var slices seamarkv1alpha1.ProbePlanList
	cluster.Must(u, u.Client.List(u.Context(), &slices))
	if len(slices.Items) > 0 {
		u.Errorf("%d ProbePlans remain", len(slices.Items))
	}
	var reports seamarkv1alpha1.ProbeReportList
	cluster.Must(u, u.Client.List(u.Context(), &reports))
	if len(reports.Items) > 0 {
		u.Errorf("%d ProbeReports remain", len(reports.Items))
	}
	u.checkNothingLeft()
}

// checkNothingLeft checks all kinds of objects that the chart installs. The policy that keeps guards in force remains.
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
			if strings.Contains(name, "seamark") && !strings.HasSuffix(name, "/seamark-guard-parameters") {
				s.Errorf("%s remains", name)
			}
		}
	}
}

// reinstall installs over the CRDs and markers that remain and have another owner, and uninstalls.
func (u *upgrade) reinstall() {
	u.Helper()
	u.setOwner("kruise")
	out, err := u.tryHelm(u.Context(), "install", release, "charts/seamark", "-f", u.values, "--dry-run=server")
	if err == nil {
		u.Errorf("helm install adopted the CRDs of another release")
	}
	u.contains("helm install", out, "CustomResourceDefinition", "invalid ownership metadata")
	u.install("--set", "crds.install=false")
	u.reached("installed without CRDs")
	u.setOwner(release)
	u.helm("uninstall", release, "--wait", "--timeout", (2 * cluster.Timeout).String())
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

// upgrade is an installation whose programs are replaced while pods are marked.
type upgrade struct {
	*suite
	*history
	pods []*upgradePod
}

// step rolls the programs with helm, and changes answers of containers meanwhile and afterwards.
func (u *upgrade) step(name string, args ...string) {
	u.Helper()
	start := time.Now()
	u.helm(args...)
	for _, pod := range u.pods {
		if pod.turn == during {
			u.flip(pod)
			<-time.After(time.Second)
		}
	}
	for _, object := range []string{"deployment/seamark-manager", "daemonset/seamark-agent"} {
		u.Kubectl("rollout", "status", "--namespace", cluster.SystemNamespace, "--timeout", cluster.Timeout.String(), object)
	}
	u.onlyCurrentPods()
	rolled := time.Since(start)
	u.settled(name + ", during the rollout")
	for _, pod := range u.pods {
		if pod.turn == after {
			u.flip(pod)
		}
	}
	u.settled(name + ", after the rollout")
	if u.Failed() {
		u.FailNow()
	}
	u.Logf("%s: rolled out after %s, settled after %s", name, rolled.Round(time.Second), time.Since(start).Round(time.Second))
}

// onlyCurrentPods waits until the replaced pods of the programs are gone.
func (u *upgrade) onlyCurrentPods() {
	u.Helper()
	deployment, daemonSet := &appsv1.Deployment{}, &appsv1.DaemonSet{}
	cluster.Must(u, u.Client.Get(u.Context(), client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "seamark-manager"}, deployment))
	cluster.Must(u, u.Client.Get(u.Context(), client.ObjectKey{Namespace: cluster.SystemNamespace, Name: "seamark-agent"}, daemonSet))
	want := int(*deployment.Spec.Replicas + daemonSet.Status.DesiredNumberScheduled)
	u.Eventually("the replaced pods are gone", func(ctx context.Context) error {
		out, err := u.TryKubectl(
			ctx, "get", "pods", "--namespace", cluster.SystemNamespace, "-l", "app.kubernetes.io/component in (manager,agent)", "-o", "name",
		)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		got := strings.Count(out, "\n")
		return await.ErrorIf(got != want, "%d pods, want %d", got, want)
	})
}

// release is the name of the release that `make install` installs.
const release = "seamark"

// suite is the cluster, a namespace in it, and the release.
type suite struct {
	*cluster.Cluster
	helmPath string
	// values is a file with the values that the release had at the start.
	values string
}

// newSuite connects to the cluster and creates a namespace. When the test ends, it restores
// the release.
func newSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{Cluster: cluster.Connect(t, "../../.."), values: filepath.Join(t.TempDir(), "values.yaml")}
	var err error
	s.helmPath, err = process.Built("helm", "test-e2e")
	cluster.Must(t, err)
	cluster.Must(t, os.WriteFile(s.values, []byte(s.helm("get", "values", release, "-o", "yaml")), 0o600))
	s.CreateNamespace("install-", s.restore)
	return s
}

// restore restores the release, whatever state the test left it in.
func (s *suite) restore(ctx context.Context) {
	if s.Failed() {
		out, err := s.TryKubectl(ctx, "get", "pods,jobs", "-o", "wide", "--namespace", cluster.SystemNamespace)
		s.Logf("state of %s (%v):\n%s", cluster.SystemNamespace, err, out)
	}
	args := append([]string{"upgrade", "--install", release, "charts/seamark", "--force-conflicts"}, s.installArgs()...)
	out, err := s.tryHelm(ctx, args...)
	if err != nil {
		s.Logf("upgrade the release: %v\n%s", err, out)
		if out, err = s.tryHelm(ctx, "uninstall", release, "--no-hooks", "--wait"); err == nil {
			out, err = s.tryHelm(ctx, args...)
		}
	}
	if err != nil {
		s.Errorf("restore the release: %v\n%s", err, out)
	}
}

// install installs the chart with the initial values of the release and more arguments.
func (s *suite) install(more ...string) string {
	s.Helper()
	return s.helm(append(append([]string{"install", release, "charts/seamark"}, s.installArgs()...), more...)...)
}

func (s *suite) installArgs() []string {
	return []string{"-f", s.values, "--wait", "--timeout", cluster.Timeout.String()}
}

// helm runs helm in the release's namespace and returns its output.
func (s *suite) helm(args ...string) string {
	s.Helper()
	out, err := s.tryHelm(s.Context(), args...)
	if err != nil {
		s.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *suite) tryHelm(ctx context.Context, args ...string) (string, error) {
	return s.Run(ctx, s.helmPath, append(args, "--kubeconfig", s.Kubeconfig(), "--namespace", cluster.SystemNamespace)...)
}

// contains checks that the output contains all wanted texts.
func (s *suite) contains(what, output string, wants ...string) {
	s.Helper()
	for _, want := range wants {
		if !strings.Contains(output, want) {
			s.Errorf("%s printed\n%s\nwant it to contain %q", what, output, want)
		}
	}
}
