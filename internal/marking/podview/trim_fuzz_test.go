// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/randfill"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// FuzzTrimPod fills every field of a pod from the seed. The trimmed pod must give the same
// plan, report and marks as the whole pod, so the cache keeps every field that they read.
func FuzzTrimPod(f *testing.F) {
	for seed := range int64(150) {
		f.Add(seed)
	}
	markers := fuzzMarkers(f)
	// All seeds share the trimmers, as the pods of a cache do.
	trimmers := map[bool]*podview.PodTrimmer{}
	for _, providers := range []bool{false, true} {
		trimmers[providers] = podview.NewPodTrimmer(podview.Options{Defaults: plan.KubernetesDefaults(), Serverless: providers})
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		pod := fillPod(seed)
		npp := &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
			UID: string(pod.UID), ProbeStates: []v1alpha1.ContainerProbeState{
				{Name: "web#a", State: v1alpha1.ProbeSucceeded}, {Name: "web#b", State: v1alpha1.ProbeFailed},
			},
		}}}}
		for _, options := range []podview.Options{
			{Defaults: plan.KubernetesDefaults()},
			{Defaults: plan.KubernetesDefaults(), Serverless: true},
		} {
			trimmer := trimmers[options.Serverless]
			trimmed := trimmer.Trim(pod)
			for _, place := range []podview.NodeKind{podview.KubeletNode, podview.VirtualNode} {
				if diff := cmp.Diff(observe(pod, markers, place, npp, options), observe(trimmed, markers, place, npp, options)); diff != "" {
					t.Errorf("trimmed pod differs with serverless %t, place %d (-whole +trimmed):\n%s", options.Serverless, place, diff)
				}
			}
			expect.Equal(t, "Trim applied twice", trimmed, trimmer.Trim(trimmed))
			if !plan.SamePlan(pod, trimmed, func() []*plan.Marker { return markers }) {
				t.Error("SamePlan distinguishes the trimmed pod")
			}
		}
	})
}

// observed is everything that the manager computes from a pod.
type observed struct {
	Plan        plan.PodPlan
	Node        v1alpha1.NodePodProbeSpec
	Report      mark.PodReport
	Owned       mark.Marks
	Shared      sets.Set[mark.Key]
	Desired     mark.Marks
	Leftover    []mark.Key
	Unparsable  bool
	Ending      bool
	Annotations serverless.Annotations
}

func observe(pod *corev1.Pod, markers []*plan.Marker, place podview.NodeKind, npp *v1alpha1.NodePodProbe, options podview.Options) observed {
	v := podview.New(pod, markers, place, mark.NodeReport{Plan: npp}, options)
	owned, errOwned := mark.Owned(pod)
	desired := v.Desired(owned)
	o := observed{
		Plan: v.Plan, Report: v.Report, Owned: owned, Desired: desired, Leftover: v.Leftover(owned, desired),
		Node:   plan.Node([]*corev1.Pod{pod}, markers, options.Defaults),
		Shared: mark.Shared(pod.ManagedFields), Unparsable: errOwned != nil, Ending: plan.Ending(pod),
	}
	if options.Serverless {
		o.Annotations = serverless.AnnotationsOf(pod)
	}
	return o
}

func fuzzMarkers(tb testing.TB) []*plan.Marker {
	tb.Helper()
	http := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}
	marker, err := plan.Compile(builders.Marker("ns", "web").
		Probe(builders.Probe("a").Container("main").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "idle", "true")).
		Probe(builders.Probe("b").Container("proxy").Condition("game.io/role").Annotation(v1alpha1.ProbeFailed, "cost", "1").Handler(http)).
		Build())
	expect.NoError(tb, err)
	return []*plan.Marker{marker}
}

// fillPod fills a pod with words that the markers use, because random text would never match.
func fillPod(seed int64) *corev1.Pod {
	pick := func(c randfill.Continue, words ...string) string { return words[c.Intn(len(words))] }
	fill := randfill.NewWithSeed(seed).NilChance(0.2).NumElements(1, 4).MaxDepth(12).Funcs(
		func(s *string, c randfill.Continue) {
			*s = pick(c, "ns", "main", "proxy", "http", "app", "game", "idle", "cost", "true", "status",
				v1alpha1.PodProbeMarkerAnnotationKey, v1alpha1.PodProbeMarkerListAnnotationKey,
				corev1.MirrorPodAnnotationKey, "kubernetes.io/config.hash", "")
		},
		func(s *corev1.PodConditionType, c randfill.Continue) {
			*s = corev1.PodConditionType(pick(c, "Initialized", "Ready", "game.io/idle", "game.io/role"))
		},
		func(s *corev1.ConditionStatus, c randfill.Continue) {
			*s = corev1.ConditionStatus(pick(c, "True", "True", "False", "Unknown", ""))
		},
		func(s *corev1.PodPhase, c randfill.Continue) {
			*s = corev1.PodPhase(pick(c, "Running", "Running", "Pending", "Succeeded", "Failed"))
		},
		func(s *corev1.ContainerRestartPolicy, c randfill.Continue) {
			*s = corev1.ContainerRestartPolicy(pick(c, "Always", "Never"))
		},
		func(s *corev1.ContainerPort, c randfill.Continue) {
			c.FillNoCustom(s)
			s.ContainerPort = 1 + c.Int31n(100)
		},
		func(*resource.Quantity, randfill.Continue) {},
		func(e *metav1.ManagedFieldsEntry, c randfill.Continue) {
			c.FillNoCustom(e)
			e.Manager = pick(c, "seamark", "kruise-manager", "kubelet")
			e.Operation = metav1.ManagedFieldsOperationType(pick(c, "Apply", "Update"))
			e.Subresource = pick(c, "status", "")
			e.FieldsV1 = metav1.NewFieldsV1(pick(c, entry, entry, "{", "{}",
				`{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:nodeName":{}}}`))
		},
	)
	pod := &corev1.Pod{}
	fill.Fill(pod)
	pod.Namespace, pod.DeletionTimestamp = "ns", &metav1.Time{Time: time.Unix(seed, 0)}
	if seed%3 > 0 {
		// Most seeds give a pod that the markers select and that may be probed.
		pod.DeletionTimestamp, pod.Status.Phase, pod.Spec.NodeName = nil, corev1.PodRunning, "node-1"
		pod.Labels = map[string]string{"app": "game", "idle": "true"}
		initialized := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
		if seed%4 == 0 {
			initialized.Status = corev1.ConditionFalse
		}
		pod.Status.Conditions = append([]corev1.PodCondition{initialized}, pod.Status.Conditions...)
	}
	return pod
}
