// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	scaleMarkers = 10
	clients      = 12
)

// scale is the size of the fleet. The counts that the test asserts are ratios, so a small
// fleet proves them too. SEAMARK_SCALE=full runs the 3,000 pods of the design's budget,
// which take minutes.
type scale struct {
	nodes, pods, replaced int
	idle                  time.Duration
}

func scaleFromEnvironment() scale {
	if os.Getenv("SEAMARK_SCALE") == "full" {
		return scale{nodes: 100, pods: 3000, replaced: 100, idle: time.Minute}
	}
	return scale{nodes: 20, pods: 600, replaced: 60, idle: 10 * time.Second}
}

// fleet is the fixture of the scale test.
type fleet struct {
	*world
	scale scale
	pods  []*corev1.Pod
}

// TestCountsOfWrites checks the numbers of writes against the design's budget, in several
// steps with the same pods. The test has its own API server: stopping it is faster than
// deleting the pods.
func TestCountsOfWrites(t *testing.T) {
	own := env.Start(t)
	stop := startManager(t, own)
	f := &fleet{world: newWorldWithoutManager(t, own), scale: scaleFromEnvironment()}
	t.Logf("%d markers, %d pods, %d nodes", scaleMarkers, f.scale.pods, f.scale.nodes)
	// Listing all objects costs the API server as much as many writes.
	f.Poll = await.Poll{Interval: 400 * time.Millisecond, Timeout: 5 * time.Minute}
	f.build()

	f.counted("plans", func(t *testing.T, writes func() env.Requests) {
		start := time.Now()
		f.createMarkers()
		t.Logf("markers created in %v", time.Since(start).Round(time.Millisecond))
		f.plansComplete()
		t.Logf("plans complete after %v", time.Since(start).Round(time.Millisecond))
		f.settle(3)
		perNode := f.scale.pods / f.scale.nodes
		most := f.scale.nodes * ((perNode + slicing.MaxPods - 1) / slicing.MaxPods) * 12 / 10
		if n, c := writes().Writes("probeplans", ""), writes().Conflicts("probeplans"); n > most || c > 0 {
			t.Errorf("%d plan writes and %d conflicts, want at most %d and 0", n, c, most)
		} else {
			t.Logf("%d plan writes", n)
		}
	})
	f.counted("marks", func(t *testing.T, writes func() env.Requests) {
		start := time.Now()
		f.reportAll()
		f.allMarked()
		t.Logf("all agents report at the same time: all pods marked after %v", time.Since(start).Round(time.Millisecond))
		f.settle(1)
		if n := writes().Writes("pods", "status"); n != f.scale.pods {
			t.Errorf("%d writes of marks, want one per pod", n)
		}
		perNode := f.scale.pods / f.scale.nodes
		if n, want := writes().Writes("probereports", ""), f.scale.nodes*((perNode+maxPods-1)/maxPods); n != want {
			t.Errorf("%d writes of ProbeReports, want %d: one for each %d pods of a node", n, want, maxPods)
		}
		if n := writes().Writes("nodepodprobes", "") + writes().Writes("probeplans", ""); n > 0 {
			t.Errorf("%d writes of plans while agents report, want none", n)
		}
	})
	f.counted("replaced pods", func(t *testing.T, writes func() env.Requests) {
		// Pods with consecutive numbers are on different nodes, whose plans do not depend on one another.
		f.each(f.scale.replaced, f.replace)
		f.plansComplete()
		f.settle(1)
		for resource, most := range map[string]int{"probeplans": 1, "nodepodprobes": 2} {
			n := writes().Writes(resource, "")
			if n > most*f.scale.replaced {
				t.Errorf("%d writes of %s for %d replaced pods, want at most %d each", n, resource, f.scale.replaced, most)
			}
			t.Logf("%d writes of %s for %d replaced pods", n, resource, f.scale.replaced)
		}
	})
	f.countsComplete()
	stop()
	f.counted("restart and idle time", func(t *testing.T, _ func() env.Requests) {
		before := f.Requested()
		versions := f.versions()
		startManager(t, own)
		f.wait(f.scale.idle)
		if all := f.writes(before); len(all) > 0 {
			t.Errorf("writes in idle time after a restart: %v", all)
		}
		for name, version := range f.versions() {
			if versions[name] != version {
				t.Errorf("%s changed from version %s to %s", name, versions[name], version)
			}
		}
	})
}

// counted runs one step. writes returns the requests since the start of the step.
func (f *fleet) counted(name string, part func(t *testing.T, writes func() env.Requests)) {
	t, ok := f.TB.(*testing.T)
	if !ok || t.Failed() {
		return
	}
	t.Run(name, func(t *testing.T) {
		before := f.Requested()
		part(t, func() env.Requests {
			after := f.Requested()
			return after.Since(before)
		})
	})
}

// each runs the work for 0 to n-1 with a few concurrent clients.
func (f *fleet) each(n int, work func(ctx context.Context, i int) error) {
	f.Helper()
	group, ctx := errgroup.WithContext(f.Context())
	group.SetLimit(clients)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	f.Must(group.Wait())
}

func nodeName(i int) string { return fmt.Sprintf("scale-%03d", i) }

func (f *fleet) build() {
	f.each(f.scale.nodes, func(ctx context.Context, i int) error {
		return f.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}})
	})
	for i := range f.scale.nodes {
		f.nodes = append(f.nodes, nodeName(i))
	}
	f.pods = make([]*corev1.Pod, f.scale.pods)
	f.each(f.scale.pods, func(ctx context.Context, i int) error {
		pod := builders.Pod(f.Namespace, fmt.Sprintf("pod-%04d", i)).Label("app", "game").Node(nodeName(i % f.scale.nodes)).Build()
		var err error
		f.pods[i], err = env.CreatePod(ctx, f.Client, pod)
		return err
	})
	f.Until("every node has a NodePodProbe", func() error {
		var plans v1alpha1.NodePodProbeList
		err := f.Client.List(f.Context(), &plans)
		return errors.Join(err, await.ErrorIf(len(plans.Items) != f.scale.nodes, "%d nodes have one", len(plans.Items)))
	})
	f.settle(1)
}

// createMarkers creates the markers at the same time: each pause makes the manager write plans.
func (f *fleet) createMarkers() {
	f.each(scaleMarkers, func(ctx context.Context, i int) error {
		name := fmt.Sprint("marker-", i)
		probe := builders.Probe("p").Label(succeeded, name, "true").Condition("game.io/" + name)
		if i%2 == 0 {
			probe.Handler(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}})
		}
		return f.Client.Create(ctx, builders.Marker(f.Namespace, name).Probe(probe).Unsaved().Build())
	})
}

// plansComplete waits until the plans have exactly the live pods, each with every probe.
func (f *fleet) plansComplete() {
	f.Helper()
	f.Until("all plans are complete", func() error {
		var nodes v1alpha1.NodePodProbeList
		var plans seamarkv1alpha1.ProbePlanList
		f.Must(errors.Join(f.Client.List(f.Context(), &nodes), f.Client.List(f.Context(), &plans)))
		removed := sets.New[string]()
		for _, npp := range nodes.Items {
			removed.Insert(npp.Spec.RemovedPods...)
		}
		got := make([]string, 0, f.scale.pods)
		for _, slice := range plans.Items {
			for _, pod := range slice.Pods {
				if removed.Has(pod.UID) {
					continue
				}
				if len(pod.Probes) != scaleMarkers {
					return fmt.Errorf("pod %s has %d probes", pod.Name, len(pod.Probes))
				}
				got = append(got, slice.NodeName+"/"+pod.UID)
			}
		}
		want := make([]string, 0, f.scale.pods)
		for _, pod := range f.pods {
			want = append(want, pod.Spec.NodeName+"/"+string(pod.UID))
		}
		slices.Sort(got)
		slices.Sort(want)
		return await.ErrorIf(!slices.Equal(got, want), "%d pods are planned", len(got))
	})
}

func (f *fleet) reportAll() {
	f.each(f.scale.nodes, func(ctx context.Context, i int) error {
		return report(ctx, f.Client, nodeName(i), func(string) v1alpha1.ProbeState { return succeeded })
	})
}

func (f *fleet) allMarked() {
	f.Helper()
	wanted := client.MatchingLabels{}
	for i := range scaleMarkers {
		wanted[fmt.Sprint("marker-", i)] = "true"
	}
	f.Until("all pods are marked", func() error {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		f.List(pods, wanted)
		return await.ErrorIf(len(pods.Items) != f.scale.pods, "%d pods are marked", len(pods.Items))
	})
}

// countsComplete waits until the status of each marker counts all pods, of which those that were replaced have no state yet. The
// manager writes it at most every two seconds.
func (f *fleet) countsComplete() {
	f.Helper()
	f.Until("the statuses of markers are complete", func() error {
		var markers v1alpha1.PodProbeMarkerList
		f.List(&markers)
		for i := range markers.Items {
			m := &markers.Items[i]
			want := [2]int64{int64(f.scale.pods), int64(f.scale.pods - f.scale.replaced)}
			if got := [2]int64{m.Status.MatchedPods, m.Status.Succeeded}; got != want {
				return fmt.Errorf("%s: matched and succeeded pods are %v, want %v", m.Name, got, want)
			}
		}
		return await.ErrorIf(len(markers.Items) != scaleMarkers, "%d markers", len(markers.Items))
	})
}

// kubeletStep is more than the time that the inputs of a plan must be unchanged, and less than a
// kubelet takes between two steps of a pod's start.
const kubeletStep = 200 * time.Millisecond

// replace ends a pod as a kubelet does, and creates another with the same name on its node. The
// steps are so far apart that each could cause a write.
func (f *fleet) replace(ctx context.Context, i int) error {
	old := f.pods[i]
	if err := f.Client.Delete(ctx, old); err != nil {
		return err
	}
	f.wait(kubeletStep)
	if err := f.Client.Delete(ctx, old, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	pod := builders.Pod(f.Namespace, old.Name).Label("app", "game").Node(old.Spec.NodeName).Build()
	status := pod.Status
	pod, err := env.InitPod(ctx, f.Client, pod)
	if err != nil {
		return err
	}
	f.wait(kubeletStep)
	f.pods[i], err = env.RunPod(ctx, f.Client, pod, status)
	f.wait(kubeletStep)
	return err
}

func (f *fleet) wait(d time.Duration) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), d)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, d, false, func(context.Context) (bool, error) { return false, nil })
}
