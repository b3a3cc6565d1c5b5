// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestTakeOverAndReturn moves a CloneSet and a StatefulSet from OpenKruise to Seamark and back. Only a
// new image restarts a container, and no pod is recreated: neither by a write of the user's manifest,
// which does not have the defaults that OpenKruise has stored, nor by what OpenKruise finds when it
// returns. openKruise does in the test what OpenKruise does.
func TestTakeOverAndReturn(t *testing.T) {
	s := newSuite(t)
	image := s.newImage()
	kruise := newOpenKruise(s)
	sets := []*moved{
		{suite: s, kind: "CloneSet", name: "web", ids: []string{"b7x2q", "k9dzm"}, volumes: t.TempDir()},
		{suite: s, kind: "StatefulSet", name: "db", ids: []string{"0", "1"}, volumes: t.TempDir()},
	}
	t.Cleanup(func() { s.drain(sets) })
	each := func(step string, do func(*moved)) {
		t.Helper()
		if !t.Run(step, func(t *testing.T) {
			for _, set := range sets {
				t.Run(set.kind, func(t *testing.T) {
					t.Parallel()
					set.during(t)
					do(set)
				})
			}
		}) {
			t.FailNow()
		}
	}

	kruise.begin()
	each("OpenKruise", (*moved).store)
	kruise.end()
	each("writes without defaults", (*moved).writeWithoutDefaults)
	each("restored template", (*moved).restoreTemplate)
	each("new image", func(set *moved) { set.updateInPlace(image) })
	kruise.begin()
	each("return", func(set *moved) {
		set.keptByOpenKruise()
		set.Never(2*time.Second, "a pod changes after the return", set.same)
	})
}

// moved is a set that is moved. Its objects are in testdata/openkruise.
type moved struct {
	*suite
	kind, name string
	// ids are the ends of the names of its pods.
	ids []string
	// volumes is a folder for the volumes of its pods.
	volumes string
	// before are its pods, by name, when they changed for the last time.
	before map[string]identity
}

// during reports errors to a subtest from now on.
func (m *moved) during(t *testing.T) {
	subtest := *m.Cluster
	subtest.TB = t
	m.suite = &suite{Cluster: &subtest}
}

// file returns the path of a file of the set.
func (m *moved) file(suffix string) string {
	return filepath.Join(m.Root, "test", "e2e", "workloads", "testdata", "openkruise", strings.ToLower(m.kind)+suffix)
}

// read decodes a file of the set.
func (m *moved) read(suffix string, into any) {
	m.Helper()
	text, err := os.ReadFile(m.file(suffix))
	cluster.Must(m, err)
	cluster.Must(m, yaml.Unmarshal(text, into))
}

// typed returns the set without its fields.
func (m *moved) typed() ctrl.Object {
	if m.kind == "CloneSet" {
		set := &v1alpha1.CloneSet{}
		set.Namespace, set.Name = m.Namespace, m.name
		return set
	}
	set := &v1beta1.StatefulSet{}
	set.Namespace, set.Name = m.Namespace, m.name
	return set
}

func (m *moved) stored() *unstructured.Unstructured {
	m.Helper()
	set := &unstructured.Unstructured{}
	m.read(".yaml", &set.Object)
	cluster.Must(m, m.Client.Get(m.Context(), m.Key(m.name), set))
	return set
}

// identity is what changes if a pod is written or a container is restarted.
type identity struct {
	UID                 types.UID
	Generation          int64
	Labels, Annotations map[string]string
	// Containers are the IDs and the numbers of restarts of the containers, by name.
	Containers map[string]string
}

// identities returns the pods of the set, by name.
func (m *moved) identities(ctx context.Context) (map[string]identity, error) {
	pods, err := m.pods(ctx, m.name)
	found := map[string]identity{}
	for name, pod := range pods {
		containers := map[string]string{}
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			containers[status.Name] = fmt.Sprintf("%s, %d restarts", status.ContainerID, status.RestartCount)
		}
		found[name] = identity{pod.UID, pod.Generation, pod.Labels, pod.Annotations, containers}
	}
	return found, err
}

// same expects that no pod has changed.
func (m *moved) same(ctx context.Context) error {
	now, err := m.identities(ctx)
	if diff := cmp.Diff(m.before, now); err == nil && diff != "" {
		err = fmt.Errorf("pods (-before +now):\n%s", diff)
	}
	return err
}

// unchanged waits until Seamark has seen the last write, and expects that no pod and no revision has
// changed.
func (m *moved) unchanged(after string) {
	m.Helper()
	set := m.typed()
	m.Eventually("the status after "+after, func(ctx context.Context) error { return m.updated(ctx, set, int32(len(m.ids))) })
	expect.NoErrorf(m, m.same(m.Context()), "after %s", after)
	if revisions := m.revisions(); len(revisions) != 1 {
		m.Fatalf("after %s: %d revisions, want that of OpenKruise", after, len(revisions))
	}
}

// revisions returns the revisions of the set, the newest last.
func (m *moved) revisions() []appsv1.ControllerRevision {
	m.Helper()
	list := &appsv1.ControllerRevisionList{}
	cluster.Must(m, m.Client.List(m.Context(), list, ctrl.InNamespace(m.Namespace), ctrl.MatchingLabels{"app": m.name}))
	return sortedByNumber(list.Items)
}

// writeWithoutDefaults writes the user's manifest again in each way that users write it: none of them
// is a change.
func (m *moved) writeWithoutDefaults() {
	m.Helper()
	m.unchanged("the take-over")
	for _, write := range []string{"apply", "apply --server-side", "replace"} {
		m.Kubectl(append(strings.Fields(write), "-f", m.file(".yaml"))...)
		m.unchanged("kubectl " + write)
	}
	containers, _, err := unstructured.NestedSlice(m.stored().Object, "spec", "template", "spec", "containers")
	cluster.Must(m, err)
	if policy, has := containers[0].(map[string]any)["imagePullPolicy"]; has {
		m.Errorf("imagePullPolicy %v is stored: the writes remove no defaults", policy)
	}
}

// updateInPlace applies the user's manifest with another image of the first container.
func (m *moved) updateInPlace(image string) {
	m.Helper()
	set := map[string]any{}
	m.read(".yaml", &set)
	containers, _, err := unstructured.NestedSlice(set, "spec", "template", "spec", "containers")
	cluster.Must(m, err)
	containers[0].(map[string]any)["image"] = image
	cluster.Must(m, unstructured.SetNestedSlice(set, containers, "spec", "template", "spec", "containers"))
	text, err := yaml.Marshal(set)
	cluster.Must(m, err)
	file := filepath.Join(m.TempDir(), "manifest.yaml")
	cluster.Must(m, os.WriteFile(file, text, 0o600))
	before, err := m.pods(m.Context(), m.name)
	cluster.Must(m, err)

	m.Kubectl("apply", "-f", file)
	m.settled(m.name, len(m.ids), runs(image), gateOpen, inState(pub.LifecycleStateNormal))
	typed := m.typed()
	m.Eventually("the status counts the updated pods", func(ctx context.Context) error { return m.updated(ctx, typed, int32(len(m.ids))) })
	after, err := m.pods(m.Context(), m.name)
	cluster.Must(m, err)
	for name, pod := range after {
		old := before[name]
		expect.Success(m, restartedOnce(&old)(&pod))
	}
	m.before, err = m.identities(m.Context())
	cluster.Must(m, err)
	for name, pod := range after {
		if was, is := before[name].Status.ContainerStatuses[1], pod.Status.ContainerStatuses[1]; was.ContainerID != is.ContainerID {
			m.Errorf("pod %s: container %s has the old image and was restarted", name, is.Name)
		}
	}
}

// restoreTemplate runs the commands of docs/migrate-from-openkruise.md for a set whose template has lost the
// defaults that its revision has: OpenKruise would update all its pods.
func (m *moved) restoreTemplate() {
	m.Helper()
	if fields := m.blocksReturn(); !slices.Equal(fields, []string{"status.updateRevision"}) {
		m.Errorf("seamark migrate check --back finds %v, want the revision", fields)
	}
	page, err := os.ReadFile(filepath.Join(m.Root, "docs", "migrate-from-openkruise.md"))
	cluster.Must(m, err)
	found := regexp.MustCompile(`(?m)^\$ (kubectl get controllerrevision REVISION .*)\n\$ (kubectl patch clonesets NAME .*)$`).FindAllSubmatch(page, -1)
	if len(found) != 1 {
		m.Fatalf("the page has the commands %d times, want once", len(found))
	}
	script := strings.NewReplacer(
		"kubectl", "kubectl --namespace "+m.Namespace, "REVISION", m.revisions()[0].Name,
		"clonesets NAME", m.kind+".apps.kruise.io "+m.name,
	).Replace(string(found[0][1]) + "\n" + string(found[0][2]))
	command := exec.CommandContext(m.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir = m.TempDir()
	command.Env = append(os.Environ(), "KUBECONFIG="+m.Kubeconfig(), "PATH="+filepath.Join(m.Dir, "bin")+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		m.Fatalf("%s: %v\n%s", script, err, out)
	}
	m.unchanged("the template is restored")
	m.keptByOpenKruise()
}

// blocksReturn returns the fields of the set that seamark migrate check --back reports as blocking.
func (m *moved) blocksReturn() []string {
	m.Helper()
	out, err := exec.CommandContext(m.Context(), filepath.Join(m.Root, "bin", "seamark"),
		"--kubeconfig", m.Kubeconfig(), "--namespace", m.Namespace, "migrate", "check", "--back", "--output", "json").Output()
	report := struct {
		Findings []migration.Finding `json:"findings"`
	}{}
	// The exit code is 1 if something blocks.
	if exit := (*exec.ExitError)(nil); err == nil || errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = json.Unmarshal(out, &report)
	}
	if err != nil {
		m.Fatalf("seamark migrate check: %v\n%s", err, out)
	}
	var fields []string
	for _, finding := range report.Findings {
		if finding.Level == migration.Blocks && finding.Kind == m.kind && finding.Name == m.name {
			fields = append(fields, finding.Field)
		}
	}
	return fields
}

// drain removes the finalizers of the pods, as the user of the hook does before they end.
func (s *suite) drain(sets []*moved) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), cluster.Timeout)
	defer cancel()
	for _, set := range sets {
		pods, err := s.pods(ctx, set.name)
		for _, pod := range pods {
			if err == nil {
				err = s.Client.Patch(ctx, &pod, ctrl.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			}
		}
		if err != nil {
			s.Errorf("remove the finalizers of %s: %v", set.name, err)
		}
	}
}
