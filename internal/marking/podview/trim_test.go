// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

const entry = `{"f:metadata":{"f:annotations":{"f:cost":{}},"f:labels":{"f:idle":{}}},
	"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:status":{},"f:type":{}}}}}`

func created() metav1.Time { return metav1.Time{Time: time.Unix(1_700_000_000, 0)} }

func fullPod() *corev1.Pod {
	pod := builders.Pod("ns", "a").Label("app", "game").Label("idle", "true").
		Annotation("cost", "-10").Annotation("foreign", "long").
		Annotation("kubernetes.io/config.mirror", "h").Annotation("kubernetes.io/config.hash", "h").
		Annotation("kruise.io/podprobe", "[]").Annotation("kruise.io/podprobemarker-list", "web").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 80}).
		InitContainer("setup", false).InitContainer("proxy", true).
		Condition(corev1.PodCondition{Type: "Ready", Status: corev1.ConditionTrue}).
		Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle"}).
		Condition(corev1.PodCondition{Type: "game.io/role", Status: corev1.ConditionFalse}).
		ManagedFields("kubelet", "status", "{}").ManagedFields("seamark", "status", entry).
		Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{"f:idle":{}}},"f:spec":{"f:volumes":{}}}`).Build()
	pod.CreationTimestamp, pod.Status.StartTime = created(), new(created())
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	return pod
}

func TestTrimPod(t *testing.T) {
	base := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").Label("idle", "true").
			Annotation("cost", "-10").Annotation("foreign", "").
			Annotation("kruise.io/podprobe", "").Annotation("kruise.io/podprobemarker-list", "").
			Annotation("kubernetes.io/config.mirror", "h").Annotation("kubernetes.io/config.hash", "h").
			Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 80}).
			InitContainer("proxy", true).
			Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle"}).
			ManagedFields("seamark", "status", entry).
			Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{"f:idle":{}}}}`)
	}
	cases := map[string]struct {
		options podview.Options
		want    *builders.PodBuilder
	}{
		"agents": {want: base()},
		"agents and providers": {
			options: podview.Options{Serverless: true},
			want: base().Annotation("kruise.io/podprobe", "[]").Annotation("kruise.io/podprobemarker-list", "web").
				Condition(corev1.PodCondition{Type: "game.io/role", Status: corev1.ConditionFalse}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.want.Build()
			want.CreationTimestamp, want.Status.StartTime = created(), new(created())
			for i := range want.Spec.Containers {
				want.Spec.Containers[i].Image = ""
			}
			want.Spec.InitContainers[0].Image = ""
			whole := fullPod()
			got := podview.NewPodTrimmer(tc.options).Trim(whole)
			expect.Equal(t, "trimmed pod", want, got)
			expect.Equal(t, "original pod changed", fullPod(), whole)
		})
	}
}

// Pods that differ in one field do not share it.
func TestTrimmedPodsShareOnlyEqualFields(t *testing.T) {
	web := func(pod *corev1.Pod) *corev1.Container { return &pod.Spec.Containers[len(pod.Spec.Containers)-1] }
	pods := map[string]func(pod *corev1.Pod){
		"same":          func(*corev1.Pod) {},
		"label":         func(pod *corev1.Pod) { pod.Labels["app"] = "db" },
		"annotation":    func(pod *corev1.Pod) { pod.Annotations["cost"] = "1" },
		"container":     func(pod *corev1.Pod) { web(pod).Name = "db" },
		"port":          func(pod *corev1.Pod) { web(pod).Ports[0].ContainerPort = 81 },
		"name of port":  func(pod *corev1.Pod) { web(pod).Ports[0].Name = "grpc" },
		"startup probe": func(pod *corev1.Pod) { web(pod).StartupProbe = &corev1.Probe{PeriodSeconds: 1} },
		"other startup probe": func(pod *corev1.Pod) {
			web(pod).StartupProbe = &corev1.Probe{PeriodSeconds: 1, TerminationGracePeriodSeconds: new(int64(5))}
		},
		"no port":        func(pod *corev1.Pod) { web(pod).Ports = nil },
		"sidecar":        func(pod *corev1.Pod) { pod.Spec.InitContainers[1].Name = "mesh" },
		"initialized":    func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse },
		"own fields":     func(pod *corev1.Pod) { pod.ManagedFields[1].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{}}`) },
		"subresource":    func(pod *corev1.Pod) { pod.ManagedFields[1].Subresource = "" },
		"no other owner": func(pod *corev1.Pod) { pod.ManagedFields = pod.ManagedFields[:2] },
		"condition": func(pod *corev1.Pod) {
			own := corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue}
			pod.Status.Conditions = append(pod.Status.Conditions, own)
		},
		"address and age": func(pod *corev1.Pod) { pod.Status.PodIP, pod.ResourceVersion = "10.0.0.9", "10" },
	}
	shared := podview.NewPodTrimmer(podview.Options{})
	for range 2 {
		for name, change := range pods {
			pod := fullPod()
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
			change(pod)
			expect.Equal(t, fmt.Sprintf("%s: pod (-alone +sharing)", name), podview.NewPodTrimmer(podview.Options{}).Trim(pod), shared.Trim(pod))
		}
	}
}

func TestTrimNode(t *testing.T) {
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "u", ResourceVersion: "7", Annotations: map[string]string{"a": "b"},
		Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet", "liqo.io/type": "virtual-node", "zone": "z"},
	}}
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "u", ResourceVersion: "7",
		Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet", "liqo.io/type": "virtual-node"},
	}}
	expect.Equal(t, "trimmed node", want, podview.TrimNode(node))
}

func TestTransformPassesOtherTypes(t *testing.T) {
	trim := podview.Transform(podview.TrimNode)
	pod := builders.Pod("ns", "a").Build()
	if got, err := trim(pod); got != any(pod) || err != nil {
		t.Errorf("transformed to %v, %v", got, err)
	}
}

// FuzzTrimPlan fills every field of a NodePodProbe. Whatever other objects have been trimmed, plan
// and report stay as they are, and so does the metadata that identifies the object.
func FuzzTrimPlan(f *testing.F) {
	for seed := range int64(100) {
		f.Add(seed)
	}
	trimmer := podview.NewPlanTrimmer()
	f.Fuzz(func(t *testing.T, seed int64) {
		whole := &v1alpha1.NodePodProbe{}
		// Time has no exported fields to fill.
		randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 3).MaxDepth(12).
			Funcs(func(*metav1.Time, randfill.Continue) {}, func(*metav1.FieldsV1, randfill.Continue) {}).Fill(whole)
		want := whole.DeepCopy()
		want.TypeMeta = metav1.TypeMeta{}
		want.ObjectMeta = metav1.ObjectMeta{
			Name: whole.Name, UID: whole.UID, ResourceVersion: whole.ResourceVersion, Generation: whole.Generation,
			Annotations: whole.Annotations, DeletionTimestamp: whole.DeletionTimestamp, OwnerReferences: whole.OwnerReferences,
		}
		before := whole.DeepCopy()
		got := trimmer.Trim(whole)
		expect.Equal(t, "trimmed NodePodProbe", want, got)
		expect.Equal(t, "original changed", before, whole)
		expect.Equal(t, "Trim applied twice", got, trimmer.Trim(got))
	})
}

func TestTrimmedPlansShareEqualProbes(t *testing.T) {
	node := func(name, marker string) *v1alpha1.NodePodProbe {
		probe := v1alpha1.ContainerProbe{Name: marker + "#p", ContainerName: "main", Plan: "1"}
		return &v1alpha1.NodePodProbe{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Name: "pod-" + name, Probes: []v1alpha1.ContainerProbe{probe}}}},
		}
	}
	trimmer := podview.NewPlanTrimmer()
	first := func(npp *v1alpha1.NodePodProbe) *v1alpha1.ContainerProbe {
		return &trimmer.Trim(npp).Spec.PodProbes[0].Probes[0]
	}
	a := first(node("a", "web"))
	if b := first(node("b", "web")); a != b {
		t.Error("equal probes of two nodes are not shared")
	}
	if c := first(node("c", "api")); a == c {
		t.Error("different probes are shared")
	}
}

// Who reads a trimmed plan still knows since when the agent must run it. Writes of the status do not
// count.
func TestTrimmedPlanKeepsLastEdit(t *testing.T) {
	at := func(seconds int64) *metav1.Time { return new(metav1.Unix(seconds, 0)) }
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{
		CreationTimestamp: *at(1), ManagedFields: []metav1.ManagedFieldsEntry{{Time: at(3)}, {Time: at(2)}, {Time: at(4), Subresource: "status"}, {}},
	}}
	trimmer := podview.NewPlanTrimmer()
	for _, plan := range []*v1alpha1.NodePodProbe{npp, trimmer.Trim(npp), trimmer.Trim(trimmer.Trim(npp))} {
		if got := podview.Edited(plan); !got.Equal(at(3).Time) {
			t.Errorf("last edit %s, want %s", got, at(3))
		}
	}
}

// FuzzTrimReport fills every field of a ProbeReport from the seed. The trimmed one must have all
// fields of the pods except those that only agents read.
func FuzzTrimReport(f *testing.F) {
	for seed := range int64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		whole := &seamarkv1alpha1.ProbeReport{}
		randfill.NewWithSeed(seed).NilChance(0.2).NumElements(1, 4).MaxDepth(12).Funcs(
			func(e *metav1.ManagedFieldsEntry, c randfill.Continue) {
				e.Manager = []string{"seamark-agent", "kubectl-edit"}[c.Intn(2)]
				e.FieldsV1 = metav1.NewFieldsV1([]string{`{"f:pods":{}}`, `{"f:metadata":{"f:labels":{}}}`}[c.Intn(2)])
			},
		).Fill(whole)
		trimmed := podview.TrimReport(whole)
		expect.Equal(t, "TrimReport applied twice", trimmed, podview.TrimReport(trimmed))
		expect.Equal(t, "ChangedByOthers of the trimmed one", podview.ChangedByOthers(trimmed), podview.ChangedByOthers(whole))
		want := whole.DeepCopy()
		want.TypeMeta = metav1.TypeMeta{}
		want.ObjectMeta = metav1.ObjectMeta{
			Name: whole.Name, UID: whole.UID, ResourceVersion: whole.ResourceVersion, ManagedFields: trimmed.ManagedFields,
		}
		report := mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{trimmed}}
		for i := range want.Pods {
			for j := range want.Pods[i].Probes {
				want.Pods[i].Probes[j].ContainerID = ""
			}
			if uid := types.UID(want.Pods[i].UID); !report.OfPod(uid).Reported {
				t.Errorf("no report about pod %s", uid)
			}
		}
		expect.Equal(t, "trimmed ProbeReport", want, trimmed)
	})
}

func TestChangedByOthers(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager}
		if fields != "" {
			e.FieldsV1 = metav1.NewFieldsV1(fields)
		}
		return e
	}
	const pods, labels = `{"f:nodeName":{},"f:pods":{}}`, `{"f:metadata":{"f:labels":{"f:pods":{}}}}`
	cases := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"no writer": {},
		"agent":     {entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.AgentFieldManager, pods)}},
		"labels of another": {
			entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.AgentFieldManager, pods), entry("kubectl", `{"f:metadata":{"f:labels":{}}}`)},
		},
		"label named pods":    {entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.AgentFieldManager, pods), entry("kubectl", labels)}},
		"another":             {entries: []metav1.ManagedFieldsEntry{entry("kubectl", pods)}, want: true},
		"agent and another":   {entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.AgentFieldManager, pods), entry("kubectl", pods)}, want: true},
		"entry without field": {entries: []metav1.ManagedFieldsEntry{entry("kubectl", "")}},
		"invalid field":       {entries: []metav1.ManagedFieldsEntry{entry("kubectl", "{")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.entries}}
			for _, r := range []*seamarkv1alpha1.ProbeReport{report, podview.TrimReport(report)} {
				expect.Equal(t, "ChangedByOthers", tc.want, podview.ChangedByOthers(r))
			}
		})
	}
}

// Trimmed pods and Nodes, however often they are trimmed, are the same evidence as whole ones.
func TestTrimKeepsEvidence(t *testing.T) {
	since, deleted := metav1.NewTime(created().Add(time.Minute)), metav1.NewTime(created().Add(time.Hour))
	pod := func(namespace, account string) *corev1.Pod {
		pod := builders.Pod(namespace, "agent").Label("app.kubernetes.io/component", "agent").
			Condition(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}).Build()
		pod.Spec.ServiceAccountName = account
		pod.CreationTimestamp, pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = created(), &deleted, new(int64(10))
		return pod
	}
	trimmer := podview.NewPodTrimmer(podview.Options{}).WithAgents("seamark-system")
	agent := pod("seamark-system", "seamark-agent")
	want := staleness.Agent{Ready: true, Since: since.Time, Deleted: deleted.Add(-10 * time.Second)}
	for name, got := range map[string]*corev1.Pod{"whole": agent, "trimmed": trimmer.Trim(agent), "trimmed twice": trimmer.Trim(trimmer.Trim(agent))} {
		if diff := cmp.Diff(want, podview.AgentReadiness(got)); diff != "" || !podview.IsAgent(got, "seamark-system") {
			t.Errorf("%s agent (-want +got):\n%s", name, diff)
		}
	}
	if got := trimmer.Trim(pod("seamark-system", "other")); len(got.Status.Conditions) > 1 {
		t.Errorf("conditions of another pod: %v", got.Status.Conditions)
	}
	for name, other := range map[string]*corev1.Pod{"tenant": pod("tenant", "seamark-agent"), "other account": pod("seamark-system", "default")} {
		if podview.IsAgent(other, "seamark-system") {
			t.Errorf("a pod of a %s is an agent", name)
		}
	}
	if podview.IsAgent(pod("", "seamark-agent"), "") {
		t.Error("a pod is an agent although the namespace of the agents is not known")
	}

	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet", "zone": "z"}},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: since, LastHeartbeatTime: deleted, Message: "m"},
		}},
	}
	trimmed := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet"}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: since},
		}},
	}
	got, err := podview.TransformNode(node)
	if diff := cmp.Diff(any(trimmed), got); diff != "" || err != nil {
		t.Errorf("trimmed Node, error %v (-want +got):\n%s", err, diff)
	}
	health := &staleness.Node{Ready: corev1.ConditionUnknown, Since: since.Time, Agentless: true}
	if diff := cmp.Diff(health, podview.NodeReadiness(trimmed)); diff != "" || podview.NodeReadiness(nil) != nil {
		t.Errorf("health (-want +got):\n%s", diff)
	}
}
