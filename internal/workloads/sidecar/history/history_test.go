// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

func set(image string, edits ...func(*v1alpha1.SidecarSet)) *v1alpha1.SidecarSet {
	s := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "uid"}, Spec: v1alpha1.SidecarSetSpec{
		Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
		Containers:     []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: image, Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}},
		InitContainers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "init", Image: "init:1"}}},
		Volumes:        []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func revise(t *testing.T, s *v1alpha1.SidecarSet, number int64) *appsv1.ControllerRevision {
	t.Helper()
	rev, err := history.New(s, "seamark-system", number, 0)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func TestRevisions(t *testing.T) {
	s := set("log:1", func(s *v1alpha1.SidecarSet) { s.Spec.CustomVersion = "v1" })
	rev := revise(t, s, 3)
	if want := map[string]string{history.SetLabel: "logs", "controller.kubernetes.io/hash": rev.Name[len("logs-"):], v1alpha1.SidecarSetCustomVersionLabel: "v1"}; !cmp.Equal(want, rev.Labels) {
		t.Errorf("labels %v, want %v", rev.Labels, want)
	}
	const content = `{"spec":{"containers":[{"image":"log:1","name":"log","ports":[{"containerPort":80}],"resources":{},"shareVolumePolicy":{},"upgradeStrategy":{}}],` +
		`"imagePullSecrets":null,"initContainers":[{"image":"init:1","name":"init","resources":{},"shareVolumePolicy":{},"upgradeStrategy":{}}],` +
		`"patchPodMetadata":null,"volumes":[{"emptyDir":{},"name":"v"}]}}`
	if diff := cmp.Diff(content, string(rev.Data.Raw)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	got, err := history.Parse(rev)
	if err != nil || got.Set != "logs" || got.Name != rev.Name || got.Hash == "" || got.HashWithoutImage == "" || got.Hash == got.HashWithoutImage {
		t.Fatalf("revision %+v, error %v", got, err)
	}
	if diff := cmp.Diff(s.Spec.Containers, got.Containers); diff != "" || !cmp.Equal(s.Spec.Volumes, got.Volumes) || !cmp.Equal(s.Spec.InitContainers, got.InitContainers) {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	// Selectors and strategies are no part of a revision.
	other := set("log:1", func(s *v1alpha1.SidecarSet) { s.Spec.Namespace, s.Spec.InjectionStrategy.Paused = "games", true })
	if again := revise(t, other, 4); !history.Equal(rev, again) || again.Name != rev.Name {
		t.Errorf("revision %s of another strategy, want %s", again.Name, rev.Name)
	}
	if next := revise(t, set("log:2"), 4); history.Equal(rev, next) || next.Name == rev.Name {
		t.Errorf("revision %s of another image, want another one", next.Name)
	}
	for name, content := range map[string]string{"no JSON": "{", "no containers": `{"spec":{}}`} {
		broken := rev.DeepCopy()
		broken.Data.Raw = []byte(content)
		if _, err := history.Parse(broken); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestHashes(t *testing.T) {
	full, without, err := history.Hashes(set("log:1"))
	if err != nil {
		t.Fatal(err)
	}
	native := func(s *v1alpha1.SidecarSet) {
		s.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	nativeFull, _, err := history.Hashes(set("log:1", native))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		set            *v1alpha1.SidecarSet
		full, without  string
		changes, other bool
	}{
		"defaults written": {set: set("log:1", func(s *v1alpha1.SidecarSet) {
			c := &s.Spec.Containers[0]
			c.PodInjectPolicy, c.UpgradeStrategy.UpgradeType, c.ShareVolumePolicy.Type = v1alpha1.BeforeAppContainerType, v1alpha1.SidecarContainerColdUpgrade, v1alpha1.ShareVolumePolicyDisabled
			c.ImagePullPolicy, c.TerminationMessagePath, c.TerminationMessagePolicy, c.Ports[0].Protocol = corev1.PullIfNotPresent, "/dev/termination-log", corev1.TerminationMessageReadFile, corev1.ProtocolTCP
		}), full: full, without: without},
		"image":    {set: set("log:2"), without: without, changes: true},
		"variable": {set: set("log:1", func(s *v1alpha1.SidecarSet) { s.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} }), changes: true, other: true},
		"limits": {set: set("log:1", func(s *v1alpha1.SidecarSet) {
			s.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}), changes: true, other: true},
		"init container":      {set: set("log:1", func(s *v1alpha1.SidecarSet) { s.Spec.InitContainers[0].Image = "init:2" }), full: full, without: without},
		"native sidecar":      {set: set("log:1", native), full: nativeFull, changes: true, other: true},
		"native, other image": {set: set("log:1", native, func(s *v1alpha1.SidecarSet) { s.Spec.InitContainers[0].Image = "init:2" }), changes: true, other: true},
	} {
		gotFull, gotWithout, err := history.Hashes(test.set)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case test.full != "" && gotFull != test.full, test.changes && gotFull == full:
			t.Errorf("%s: hash %s, without changes %s", name, gotFull, full)
		case test.without != "" && gotWithout != test.without, test.other && gotWithout == without:
			t.Errorf("%s: hash without images %s, without changes %s", name, gotWithout, without)
		}
	}
}

func TestNamed(t *testing.T) {
	version := func(v string) func(*v1alpha1.SidecarSet) {
		return func(s *v1alpha1.SidecarSet) { s.Labels = map[string]string{v1alpha1.SidecarSetCustomVersionLabel: v} }
	}
	first, second, third := revise(t, set("log:1", version("v1")), 1), revise(t, set("log:2", version("v1")), 2), revise(t, set("log:3"), 3)
	recreated := revise(t, set("log:4", version("v4"), func(s *v1alpha1.SidecarSet) { s.UID = "earlier" }), 9)
	foreign := revise(t, set("log:5", version("v5"), func(s *v1alpha1.SidecarSet) { s.Name, s.UID = "other", types.UID("other") }), 8)
	elsewhere := revise(t, set("log:6", version("v6")), 7)
	elsewhere.Namespace = "hostile"
	all := []*appsv1.ControllerRevision{third, foreign, first, recreated, elsewhere, second}
	for name, test := range map[string]struct {
		named *v1alpha1.SidecarSetInjectRevision
		want  *appsv1.ControllerRevision
		err   string
	}{
		"none":                 {},
		"name":                 {named: &v1alpha1.SidecarSetInjectRevision{RevisionName: &first.Name}, want: first},
		"newest of a version":  {named: &v1alpha1.SidecarSetInjectRevision{CustomVersion: new("v1")}, want: second},
		"name before version":  {named: &v1alpha1.SidecarSetInjectRevision{CustomVersion: new("v1"), RevisionName: &third.Name}, want: third},
		"empty name, version":  {named: &v1alpha1.SidecarSetInjectRevision{CustomVersion: new("v1"), RevisionName: new("")}, want: second},
		"of another set":       {named: &v1alpha1.SidecarSetInjectRevision{RevisionName: &foreign.Name}, err: `spec.injectionStrategy.revision.revisionName: "` + foreign.Name + `" is not found: the set has ` + first.Name + ", " + second.Name + ", " + third.Name},
		"of another namespace": {named: &v1alpha1.SidecarSetInjectRevision{RevisionName: &elsewhere.Name}, err: `spec.injectionStrategy.revision.revisionName: "` + elsewhere.Name + `" is not found: the set has ` + first.Name + ", " + second.Name + ", " + third.Name},
		"of an earlier set":    {named: &v1alpha1.SidecarSetInjectRevision{CustomVersion: new("v4")}, err: `spec.injectionStrategy.revision.customVersion: "v4" is not found: the set has v1`},
	} {
		t.Run(name, func(t *testing.T) {
			s := set("log:3", func(s *v1alpha1.SidecarSet) { s.Spec.InjectionStrategy.Revision = test.named })
			got, err := history.Named(s, "seamark-system", all)
			var missing *history.NotFoundError
			if errors.As(err, &missing) != (test.err != "") || test.err != "" && err.Error() != test.err {
				t.Fatalf("error %v, want %s", err, test.err)
			}
			if got != test.want {
				t.Errorf("revision %v, want %v", got, test.want)
			}
		})
	}
	if _, err := history.Named(set("log:1", func(s *v1alpha1.SidecarSet) {
		s.Spec.InjectionStrategy.Revision = &v1alpha1.SidecarSetInjectRevision{CustomVersion: new("v1")}
	}), "seamark-system", nil); err == nil || err.Error() != `spec.injectionStrategy.revision.customVersion: "v1" is not found: the set has none` {
		t.Errorf("error %v", err)
	}
}

// TestHashesOfOpenKruise compares hashes with those that OpenKruise computes: pods that it injected must not be
// updated when Seamark takes over.
func TestHashesOfOpenKruise(t *testing.T) {
	text, err := os.ReadFile("testdata/sets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sets []*v1alpha1.SidecarSet
	if err := yaml.Unmarshal(text, &sets); err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/hashes.json")
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string][2]string{}, map[string][2]string{}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		full, withoutImages, err := history.Hashes(set)
		if err != nil {
			t.Fatal(err)
		}
		got[set.Name] = [2]string{full, withoutImages}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hashes (-OpenKruise +Seamark):\n%s", diff)
	}
}
