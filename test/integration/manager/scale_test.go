// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	scaleNodes   = 100
	scalePods    = 3000
	scaleMarkers = 10
	scaleReplace = 300
	clients      = 12
)

// fleet is the world of the scale test.
type fleet struct {
	*world
	pods []*corev1.Pod
}

// TestCountsOfWrites holds the manager to the counts that the design budgets, one
// after another over the same 3,000 pods. They have an API server of their own, which
// ends sooner than the pods could be deleted.
func TestCountsOfWrites(t *testing.T) {
	own := env.Start(t)
	stop := startManager(t, own)
	f := &fleet{world: newWorldWithoutManager(t, own)}
	// A look at all of it costs the API server as much as many writes.
	f.poll = await.Poll{Interval: 400 * time.Millisecond, Timeout: 5 * time.Minute}
	f.build()

	f.counted("plans", func(t *testing.T, writes func() env.Requests) {
		start := time.Now()
		f.createMarkers()
		t.Logf("markers created after %v", time.Since(start).Round(time.Millisecond))
		f.plansStand()
		t.Logf("10 markers over 3,000 pods on 100 nodes: plans stand after %v", time.Since(start).Round(time.Millisecond))
		f.rest()
		f.rest()
		if n, c := writes().Writes("nodepodprobes", ""), writes().Conflicts("nodepodprobes"); n > 120 || c > 0 {
			t.Errorf("%d plan writes and %d conflicts, want at most 120 and none", n, c)
		} else {
			t.Logf("%d plan writes", n)
		}
	})
	f.counted("marks", func(t *testing.T, writes func() env.Requests) {
		start := time.Now()
		f.reportAll()
		f.allMarked()
		t.Logf("all agents report at once: 3,000 pods marked after %v", time.Since(start).Round(time.Millisecond))
		f.rest()
		if n := writes().Writes("pods", "status"); n != scalePods {
			t.Errorf("%d writes of marks, want one a pod", n)
		}
	})
	f.counted("replaced pods", func(t *testing.T, writes func() env.Requests) {
		for i := range scaleReplace {
			f.replace(i * (scalePods / scaleReplace))
		}
		f.plansStand()
		f.rest()
		n := writes().Writes("nodepodprobes", "")
		if n > 2*scaleReplace {
			t.Errorf("%d plan writes for %d pods replaced, want at most two each", n, scaleReplace)
		}
		t.Logf("%d plan writes for %d pods replaced one by one", n, scaleReplace)
	})
	f.rest()
	stop()
	f.counted("a restart and a quiet minute", func(t *testing.T, _ func() env.Requests) {
		before, err := f.env.Requests(t.Context())
		f.must(err)
		versions := f.versions()
		startManager(t, own)
		f.quiet(time.Minute)
		if all := f.writes(before); len(all) > 0 {
			t.Errorf("writes in a quiet minute after a restart: %v", all)
		}
		for name, version := range f.versions() {
			if versions[name] != version {
				t.Errorf("%s moved from %s to %s", name, versions[name], version)
			}
		}
	})
}

// counted runs one part, which asks for what the API server has counted since its start.
func (f *fleet) counted(name string, part func(t *testing.T, writes func() env.Requests)) {
	t, ok := f.TB.(*testing.T)
	if !ok || t.Failed() {
		return
	}
	t.Run(name, func(t *testing.T) {
		before, err := f.env.Requests(t.Context())
		f.must(err)
		part(t, func() env.Requests {
			after, err := f.env.Requests(t.Context())
			f.must(err)
			return after.Since(before)
		})
	})
}

// each runs the work for 0 to n-1 with a few clients at once.
func (f *fleet) each(n int, work func(ctx context.Context, i int) error) {
	f.Helper()
	group, ctx := errgroup.WithContext(f.Context())
	group.SetLimit(clients)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	f.must(group.Wait())
}

func nodeName(i int) string { return fmt.Sprintf("scale-%03d", i) }

func (f *fleet) build() {
	f.each(scaleNodes, func(ctx context.Context, i int) error {
		return f.client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}})
	})
	for i := range scaleNodes {
		f.nodes = append(f.nodes, nodeName(i))
	}
	f.pods = make([]*corev1.Pod, scalePods)
	f.each(scalePods, func(ctx context.Context, i int) error {
		pod := builders.Pod(f.namespace, fmt.Sprintf("pod-%04d", i)).Label("app", "game").Node(nodeName(i % scaleNodes)).Build()
		var err error
		f.pods[i], err = env.CreatePod(ctx, f.client, pod)
		return err
	})
	f.until("every node has a NodePodProbe", func(ctx context.Context) (string, error) {
		var plans v1alpha1.NodePodProbeList
		if err := f.client.List(ctx, &plans); err != nil || len(plans.Items) == scaleNodes {
			return "", err
		}
		return fmt.Sprint(len(plans.Items), " have"), nil
	})
	f.rest()
}

func (f *fleet) createMarkers() {
	for i := range scaleMarkers {
		name := fmt.Sprint("marker-", i)
		f.marker(builders.Marker(f.namespace, name).
			Probe(builders.Probe("p").Label(succeeded, name, "true").Condition("game.io/" + name)))
	}
}

// plansStand waits until the plans have every live pod with every probe, and nothing else.
func (f *fleet) plansStand() {
	f.Helper()
	f.until("all plans stand", func(ctx context.Context) (string, error) {
		var plans v1alpha1.NodePodProbeList
		if err := f.client.List(ctx, &plans); err != nil {
			return "", err
		}
		got := make([]string, 0, scalePods)
		for _, npp := range plans.Items {
			for _, pod := range npp.Spec.PodProbes {
				if len(pod.Probes) != scaleMarkers {
					return fmt.Sprintf("pod %s has %d probes", pod.Name, len(pod.Probes)), nil
				}
				got = append(got, npp.Name+"/"+pod.UID)
			}
		}
		want := make([]string, 0, scalePods)
		for _, pod := range f.pods {
			want = append(want, pod.Spec.NodeName+"/"+string(pod.UID))
		}
		slices.Sort(got)
		slices.Sort(want)
		if slices.Equal(got, want) {
			return "", nil
		}
		return fmt.Sprintf("%d pods are planned", len(got)), nil
	})
}

func (f *fleet) reportAll() {
	f.each(scaleNodes, func(ctx context.Context, i int) error {
		return report(ctx, f.client, nodeName(i), func(string) v1alpha1.ProbeState { return succeeded })
	})
}

func (f *fleet) allMarked() {
	f.Helper()
	wanted := client.MatchingLabels{}
	for i := range scaleMarkers {
		wanted[fmt.Sprint("marker-", i)] = "true"
	}
	f.until("all pods are marked", func(ctx context.Context) (string, error) {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := f.client.List(ctx, pods, client.InNamespace(f.namespace), wanted); err != nil || len(pods.Items) == scalePods {
			return "", err
		}
		return fmt.Sprint(len(pods.Items), " are"), nil
	})
}

// replace ends a pod as a kubelet does, and starts another of the name on its node.
func (f *fleet) replace(i int) {
	f.Helper()
	old := f.pods[i]
	f.must(f.client.Delete(f.Context(), old))
	f.must(f.client.Delete(f.Context(), old, client.GracePeriodSeconds(0)))
	pod, err := env.CreatePod(f.Context(), f.client,
		builders.Pod(f.namespace, old.Name).Label("app", "game").Node(old.Spec.NodeName).Build())
	f.must(err)
	f.pods[i] = pod
}

// quiet waits for the duration.
func (f *fleet) quiet(d time.Duration) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), d)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, d, false, func(context.Context) (bool, error) { return false, nil })
}
