// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
)

// keptByOpenKruise expects that OpenKruise 1.9 would neither write to a pod nor recreate one. Its
// controllers encode the template that is stored, compare the bytes with those of the revisions, and
// update the pods that do not have the label of the revision with these bytes.
func (m *moved) keptByOpenKruise() {
	m.Helper()
	set, revisions := m.stored(), m.revisions()
	newest := revisions[len(revisions)-1]
	if got := encode(m, set); !bytes.Equal(got, newest.Data.Raw) {
		m.Errorf("OpenKruise would create a revision, and update all pods. It encodes\n%s\nthe newest revision %s has\n%s",
			got, newest.Name, newest.Data.Raw)
	}
	status, _, _ := unstructured.NestedMap(set.Object, "status")
	if status["updateRevision"] != newest.Name || status["currentRevision"] != newest.Name {
		m.Errorf("status %v, want revision %s", status, newest.Name)
	}
	pods, err := m.pods(m.Context(), m.name)
	cluster.Must(m, err)
	expect.Equal(m, "pods", len(m.ids), len(pods))
	for _, pod := range pods {
		if err := m.upToDate(set, &pod, newest.Name); err != nil {
			m.Errorf("OpenKruise would write to pod %s: %v", pod.Name, err)
		}
	}
	if err := m.accepted(set); err != nil {
		m.Errorf("OpenKruise's webhook would refuse writes of the set: %v", err)
	}
	if fields := m.blocksReturn(); len(fields) > 0 {
		m.Errorf("seamark migrate check --back finds %v, want nothing", fields)
	}
}

// upToDate reports why OpenKruise would write to a pod.
func (m *moved) upToDate(set *unstructured.Unstructured, pod *corev1.Pod, revision string) error {
	if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != set.GetUID() {
		return fmt.Errorf("controller %v", owner)
	}
	identity := map[string]string{appsv1.StatefulSetPodNameLabel: pod.Name}
	if m.kind == "CloneSet" {
		identity = map[string]string{
			v1alpha1.CloneSetInstanceID:            shortHash(pod.Name),
			appsv1.DefaultDeploymentUniqueLabelKey: shortHash(revision),
		}
	}
	identity[appsv1.ControllerRevisionHashLabelKey] = revision
	identity[pub.LifecycleStateKey] = string(pub.LifecycleStateNormal)
	identity[pub.SpecifiedDeleteKey] = ""
	for label, want := range identity {
		if got := pod.Labels[label]; got != want {
			return fmt.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	if i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "data" }); i < 0 ||
		pod.Spec.Volumes[i].PersistentVolumeClaim == nil || pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName != "data-"+pod.Name {
		return errors.New("the volume data is not that of its claim")
	}
	// OpenKruise finishes the update in the annotations, if it is not finished.
	if grace, has := pod.Annotations[pub.InPlaceUpdateGraceKey]; has {
		return fmt.Errorf("grace period %s", grace)
	}
	state := map[string]any{}
	if text, has := pod.Annotations[pub.InPlaceUpdateStateKey]; has {
		if err := json.Unmarshal([]byte(text), &state); err != nil {
			return fmt.Errorf("decode update %s: %w", text, err)
		}
	}
	for field := range state {
		if strings.HasPrefix(field, "next") {
			return fmt.Errorf("update in place %v: containers are left", state)
		}
	}
	return gateOpen(pod)
}

// accepted reports why OpenKruise's webhook would refuse the set. It first sets defaults that are not
// stored.
func (m *moved) accepted(set *unstructured.Unstructured) error {
	field := func(path ...string) string {
		value, _, _ := unstructured.NestedFieldNoCopy(set.Object, append([]string{"spec"}, path...)...)
		if value == nil {
			return ""
		}
		return fmt.Sprint(value)
	}
	template := templateOf(m, set)
	if policy := template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways || template.Spec.ActiveDeadlineSeconds != nil {
		return fmt.Errorf("restartPolicy %s, activeDeadlineSeconds %v", policy, template.Spec.ActiveDeadlineSeconds)
	}
	strategy := field("updateStrategy", "type")
	if m.kind == "CloneSet" {
		if !slices.Contains([]string{"", "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"}, strategy) {
			return fmt.Errorf("updateStrategy.type %s", strategy)
		}
		return nil
	}
	if rolling := field("updateStrategy", "rollingUpdate"); strategy == "OnDelete" && rolling != "" {
		return fmt.Errorf("rollingUpdate %s with type OnDelete", rolling)
	}
	policy := field("updateStrategy", "rollingUpdate", "podUpdatePolicy")
	if gate := (corev1.PodReadinessGate{ConditionType: pub.InPlaceUpdateReady}); strings.HasPrefix(policy, "InPlace") &&
		!slices.Contains(template.Spec.ReadinessGates, gate) {
		return fmt.Errorf("podUpdatePolicy %s without the readiness gate in the template", policy)
	}
	unavailable := cmp.Or(field("updateStrategy", "rollingUpdate", "maxUnavailable"), "1")
	if unavailable != "1" && field("podManagementPolicy") != string(appsv1.ParallelPodManagement) {
		return fmt.Errorf("maxUnavailable %s without podManagementPolicy Parallel", unavailable)
	}
	return nil
}

// encode returns the data of the revision that OpenKruise writes for the set: its template as the types
// of Kubernetes 1.32 encode it. They write the creation time that a template never has.
func encode(t testing.TB, set *unstructured.Unstructured) []byte {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(templateOf(t, set))
	cluster.Must(t, err)
	cluster.Must(t, unstructured.SetNestedField(fields, nil, "metadata", "creationTimestamp"))
	fields["$patch"] = "replace"
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
	cluster.Must(t, err)
	return data
}

func templateOf(t testing.TB, set *unstructured.Unstructured) *corev1.PodTemplateSpec {
	t.Helper()
	template := &corev1.PodTemplateSpec{}
	decodeField(t, set, template, "spec", "template")
	return template
}

func decodeField(t testing.TB, object *unstructured.Unstructured, into any, path ...string) {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	cluster.Must(t, err)
	text, err := json.Marshal(value)
	cluster.Must(t, err)
	cluster.Must(t, json.Unmarshal(text, into))
}

// sortedByNumber sorts revisions, the newest last.
func sortedByNumber(revisions []appsv1.ControllerRevision) []appsv1.ControllerRevision {
	slices.SortFunc(revisions, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	return revisions
}

// shortHash returns what follows the last "-" of a name.
func shortHash(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }

// databaseImage is the image of the example database. Its versions v1 and v2 have different IDs, as
// those of a new build have. An update in place to another name of the same ID takes longer.
const databaseImage = "docker.io/seamark/example-database"

// TestSwitchesOfThePrimary updates the database of examples/primary-secondary in place. Each update
// switches the primary once, and deletes no pod. FuzzOneSwitch in internal/workloads/statefulset
// checks this for a database whose role moves and whose pods crash meanwhile.
func TestSwitchesOfThePrimary(t *testing.T) {
	t.Parallel()
	s, set := newSuite(t), &v1beta1.StatefulSet{}
	folder := filepath.Join(s.Root, "examples", "primary-secondary")
	for _, file := range []string{"rbac.yaml", "marker.yaml"} {
		s.Kubectl("apply", "-f", filepath.Join(folder, file))
	}
	manifest, err := os.ReadFile(filepath.Join(folder, "statefulset.yaml"))
	cluster.Must(t, err)
	cluster.Must(t, yaml.UnmarshalStrict(manifest, set))
	container := &set.Spec.Template.Spec.Containers[0]
	// The times that a busy machine could exceed keep their defaults: those until a role is marked,
	// and until a lease is lost.
	container.Command = append(container.Command, "--lag", "500ms", "--retry", "200ms")
	// Pods that are not ready are updated at once. A busy machine may answer after the default of a second.
	container.ReadinessProbe.TimeoutSeconds = 10
	container.Image = s.databaseImage(0)
	s.Create(set)
	switches, pods := s.databaseIsAtRest(container.Image), map[string]*corev1.Pod{}
	for i := range 3 {
		name := fmt.Sprintf("database-%d", i)
		pods[name] = s.Pod(name)
	}
	for update := 1; update <= 3; update++ {
		image := s.databaseImage(update)
		patch(s, set, func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image })
		now := s.databaseIsAtRest(image)
		if now != switches+1 {
			t.Errorf("update %d switched the primary %d times, want once", update, now-switches)
		}
		switches = now
	}
	for name, pod := range pods {
		if s.Pod(name).UID != pod.UID {
			t.Errorf("pod %s was replaced, want it updated in place", name)
		}
	}
}

// databaseIsAtRest waits until the replicas run the image and are ready, and their labels show their
// roles. It returns how often the primary has switched.
func (s *suite) databaseIsAtRest(image string) (switches int32) {
	s.Helper()
	s.Eventually("the database is at rest", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := s.Client.Get(ctx, s.Key("database"), lease); err != nil {
			return err
		}
		if successor := lease.Annotations["example.com/successor"]; successor != "" {
			return fmt.Errorf("%s is to become the primary", successor)
		}
		primary := ptr.Deref(lease.Spec.HolderIdentity, "")
		pods, err := s.pods(ctx, "database")
		if err == nil && (len(pods) != 3 || primary == "") {
			err = fmt.Errorf("%d pods, want 3, and primary %q", len(pods), primary)
		}
		if err != nil {
			return err
		}
		for _, pod := range pods {
			for _, want := range []func(*corev1.Pod) error{ready, runs(image), hasRole(primary)} {
				if err := want(&pod); err != nil {
					return err
				}
			}
		}
		switches = ptr.Deref(lease.Spec.LeaseTransitions, 0)
		return nil
	})
	return switches
}

// hasRole expects that the label of a pod shows its role.
func hasRole(primary string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		want := "secondary"
		if pod.Name == primary {
			want = "primary"
		}
		got := pod.Labels["role"]
		return await.ErrorIf(got != want, "pod %s has role %q, want %q", pod.Name, got, want)
	}
}

// databaseImage returns the image of an update. Successive updates change the program, and no two
// have the same name.
func (s *suite) databaseImage(update int) string {
	s.Helper()
	name := fmt.Sprintf("%s:%s-%d", databaseImage, s.Namespace, update)
	s.tag(fmt.Sprintf("%s:v%d", databaseImage, 1+update%2), name)
	return name
}
