// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// TestRestartWritesNothing restarts the program with 50 sets of 10 pods: it reconciles each once.
// The reconciles are counted for the whole process.
func TestRestartWritesNothing(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Serial(t))
	stop := w.start()
	const sets, replicas = 25, 10
	var all []client.Object
	for i := range sets {
		clones := w.cloneSet(fmt.Sprint("clones-", i), replicas, func(set *v1alpha1.CloneSet) {
			set.Spec.ProgressDeadlineSeconds = new(int32(600))
		})
		all = append(all, clones, w.statefulSet(fmt.Sprint("stateful-", i), replicas, parallel))
	}
	for _, set := range all {
		w.settled(set, replicas, "image:1")
	}
	stop()
	writes, reconciles := w.writes(), reconciled(t)
	w.start()
	w.Until("every set is reconciled", func() error {
		n := reconciled(t) - reconciles
		return await.ErrorIf(n < 2*sets, "%g reconciles", n)
	})
	// What a second reconcile or a write would follow from has happened by now.
	select {
	case <-time.After(time.Second):
	case <-t.Context().Done():
	}
	if n := reconciled(t) - reconciles; n != 2*sets {
		t.Errorf("%g reconciles of %d sets, want one each", n, 2*sets)
	}
	expect.Equal(t, "writes after a restart with nothing to do", 0, w.writes()-writes)
}

// writes returns the number of writes to sets, pods, claims and revisions that the API server served.
func (w *world) writes() int {
	w.Helper()
	requests, err := w.Requests(w.Context())
	w.Must(err)
	return requests.Count(func(r env.Request) bool {
		return r.IsWrite() && strings.Contains("clonesets statefulsets pods persistentvolumeclaims controllerrevisions", r.Resource)
	})
}

// reconciled returns the number of reconciles of both controllers.
func reconciled(t *testing.T) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	expect.NoError(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, metric := range family.GetMetric() {
				total += count(metric)
			}
		}
	}
	return total
}

func count(metric *dto.Metric) float64 { return metric.GetCounter().GetValue() }

// TestFirstSetOfANamespaceWaits runs the program without the manager: the set reports that it waits, and has its pods when an
// administrator has created the RoleBinding.
func TestFirstSetOfANamespaceWaits(t *testing.T) {
	e := servers.Parallel(t)
	w := &world{World: env.NewWorld(t, e)}
	t.Cleanup(w.clean)
	w.RunKubelets(nil)
	w.start()
	set := w.cloneSet("web", 2)
	w.says(set, "that it waits", func(message string) bool {
		return strings.Contains(message, fmt.Sprintf("waiting for a RoleBinding of ClusterRole %s", grants.Role))
	})
	byHand := env.WorkloadsBinding(w.Namespace)
	byHand.Name = "by-hand"
	w.Create(byHand)
	w.settled(set, 2, "image:1")
}

// TestControllersYieldToOpenKruise starts the program while the lease of OpenKruise's manager is held,
// and lets the lease expire.
func TestControllersYieldToOpenKruise(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	lease := program.OpenKruiseLeads(t, w.Env, time.Hour)
	defer func() { w.Delete(builders.OpenKruiseWebhook(program.OpenKruise)); w.Delete(lease) }()
	set := w.cloneSet("web", 2)
	w.start()
	w.Until("an event about the lease", func() error {
		system := env.WorldOf(t, w.Env, program.OpenKruise)
		found := slices.ContainsFunc(system.Events("SeamarkYields"), func(e corev1.Event) bool { return e.InvolvedObject.Name == lease.Name })
		return await.ErrorIf(!found, "no event")
	})
	expect.Equal(t, "seamark_workloads_yielding", 1, w.gauge("seamark_workloads_yielding", "CloneSet"))
	pods, err := w.pods(t.Context(), "web")
	if w.Must(err); len(pods) != 0 {
		t.Errorf("%d pods while OpenKruise's manager holds its lease, want none", len(pods))
	}
	// The lease expires: it is short now, and not renewed.
	w.Patch(lease, `{"spec":{"leaseDurationSeconds":1}}`)
	w.settled(set, 2, "image:1")
	expect.Equal(t, "seamark_workloads_yielding", 0, w.gauge("seamark_workloads_yielding", "CloneSet"))
}

// gauge returns the value of a metric of the kind.
func (w *world) gauge(name, kind string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	w.Must(err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == name && label.GetName() == "kind" && label.GetValue() == kind {
					return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				}
			}
		}
	}
	w.Must(errors.New("no metric " + name + " of kind " + kind))
	return 0
}

// TestProgramEndsWhenTheCRDOfMarkersIsInstalled installs the CRD of PodProbeMarkers while the program
// runs. After its next start, a marker that writes a label of a set's selector is reported, and no
// longer when it is deleted.
func TestProgramEndsWhenTheCRDOfMarkersIsInstalled(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.CRDDir("config/crd/workloads"))
	w := newWorldWithoutProgram(t, e)
	set := w.cloneSet("web", 1, func(s *v1alpha1.CloneSet) { s.Spec.Template.Labels["tier"] = "front" })
	running, err := program.New(w.Component(w, workloads.Name))
	w.Must(err)
	done := make(chan error, 1)
	go func() { done <- running.Run(t.Context()) }()
	w.settled(set, 1, "image:1")

	crds, err := env.ReadCRDs("config/crd/bases")
	w.Must(err)
	for _, crd := range crds {
		if crd.Spec.Names.Kind == "PodProbeMarker" {
			w.Create(crd)
		}
	}
	marker := &v1alpha1.PodProbeMarker{
		ObjectMeta: w.Meta("app"),
		Spec: v1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}},
			Probes: []v1alpha1.PodContainerProbe{{
				Name: "app", ContainerName: "main",
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)},
				}}},
				MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{{
					State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"app": "other"},
				}},
			}},
		},
	}
	w.Until("the marker is created", func() error { return e.Client.Create(t.Context(), marker) }) // The CRD is being established.
	select {
	case err := <-done:
		if !errors.Is(err, workloads.ErrMarkersServed) {
			t.Fatalf("the program ended with %v, want ErrMarkersServed", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the program runs a minute after the CRD was installed")
	}
	w.start()
	reported := func(want corev1.ConditionStatus) {
		t.Helper()
		w.Shows(set, fmt.Sprintf("SelectorMarked is %s", want), func() error {
			found := slices.ContainsFunc(
				set.Status.Conditions, func(c v1alpha1.CloneSetCondition) bool { return c.Type == "SelectorMarked" && c.Status == want },
			)
			return await.ErrorIf(!found, "conditions %v", set.Status.Conditions)
		})
	}
	reported(corev1.ConditionTrue)
	w.Delete(marker)
	reported(corev1.ConditionFalse)
}

// quota limits the pods of the namespace. The controller of quotas does not run here, so the test
// writes the status.
func (w *world) quota(pods string) {
	w.Helper()
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
	quota := &corev1.ResourceQuota{ObjectMeta: w.Meta("pods")}
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
		quota.Spec.Hard = hard
		w.Create(quota)
		quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	}
	quota.Spec.Hard = hard
	used := quota.Status.Used
	w.Must(w.Client.Update(w.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	w.UpdateStatus(quota)
}

// failing returns the message of the condition that reports pods which cannot be created, empty if
// the condition is not True.
func (w *world) failing(set client.Object) string {
	w.Helper()
	w.Get(set)
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		for _, c := range set.Status.Conditions {
			if c.Type == v1alpha1.CloneSetConditionFailedScale && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	case *v1beta1.StatefulSet:
		for _, c := range set.Status.Conditions {
			if c.Type == v1beta1.FailedCreatePod && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	}
	return ""
}

// says waits until the message of the condition satisfies the check.
func (w *world) says(set client.Object, what string, check func(message string) bool) {
	w.Helper()
	w.Until(set.GetName()+" reports "+what, func() error {
		message := w.failing(set)
		return await.ErrorIf(!check(message), "message %q", message)
	})
}

// TestRefusedPodsAreReportedAndRetried checks that pods which a quota rejects are reported
// with the reason, cost few requests, and are created when they are admitted.
func TestRefusedPodsAreReportedAndRetried(t *testing.T) {
	for _, kind := range []string{"CloneSet", "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorldWithoutProgram(t, servers.Parallel(t))
			w.quota("2")
			var set client.Object
			if kind == "CloneSet" {
				set = w.cloneSet("web", 20)
			} else {
				set = w.statefulSet("db", 20, func(s *v1beta1.StatefulSet) { s.Spec.PodManagementPolicy = "Parallel" })
			}
			line := &wire{decide: func(string, int) fate { return deliver }}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			config := w.Component(w, workloads.Name)
			go func() { defer close(done); w.process(ctx, config, line) }()
			defer func() { cancel(); <-done }()

			w.says(set, "the reason", func(message string) bool { return strings.Contains(message, "exceeded quota: pods") })
			before := line.podPosts()
			<-time.After(5 * time.Second)
			if pods, err := w.pods(t.Context(), set.GetName()); err != nil || len(pods) != 2 {
				t.Errorf("%d pods (%v), want 2", len(pods), err)
			}
			// The back-off doubles: after 10 ms, it takes nine attempts to reach 5 s.
			posts := line.podPosts()
			t.Logf("%d requests until the condition, %d in the next 5 s", before, posts-before)
			if posts > 50 {
				t.Errorf("%d requests, and %d in the next 5 s: too many", before, posts-before)
			}
			w.quota("50")
			w.calm(patience(), set, 20, "image:1")
			w.says(set, "nothing any more", func(message string) bool { return message == "" })
		})
	}
}

// TestSelectorsOfOwnLabels checks that a set whose selector has a label that Seamark sets on pods creates none, and says
// why: it would release its pods and create others, for ever.
func TestSelectorsOfOwnLabels(t *testing.T) {
	w := newWorld(t)
	absent := metav1.LabelSelectorRequirement{Key: pub.WorkloadKey, Operator: metav1.LabelSelectorOpDoesNotExist}
	for _, set := range []client.Object{
		w.cloneSet("absent", 3, func(s *v1alpha1.CloneSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{absent}
		}),
		w.cloneSet("value", 3, func(s *v1alpha1.CloneSet) {
			s.Spec.Selector.MatchLabels[appsv1.ControllerRevisionHashLabelKey] = "x"
			s.Spec.Template.Labels[appsv1.ControllerRevisionHashLabelKey] = "x"
		}),
		w.statefulSet("ordinals", 3, func(s *v1beta1.StatefulSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{absent}
		}),
	} {
		w.says(set, "why it creates no pods", func(message string) bool {
			return strings.HasPrefix(message, "spec.selector.") && strings.HasSuffix(message, "which Seamark sets")
		})
		if pods, err := w.pods(t.Context(), set.GetName()); err != nil || len(pods) > 0 {
			t.Errorf("%s has %d pods, error %v", set.GetName(), len(pods), err)
		}
	}
}
