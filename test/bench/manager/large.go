// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows of the measure of a large cluster.
const (
	rowLargePlans    = "first start: until the plans of 150,000 pods on 5,000 nodes are stored"
	rowLargeMarks    = "all agents report 150,000 pods at once: until 10,010 are marked"
	rowLargeEdit     = "edit of a marker of 10 pods: until all plans are stored, median"
	rowLargeEditMost = "edit of a marker of 10,000 pods: until all plans are stored"
	rowLargeEditCPU  = "manager's processor time per edit of a marker of 10 pods"
	rowLargeRestart  = "restart: until a change that was reported before is marked"
	rowLargeStart    = "restart: until all pods are decided"
	rowLargeStartCPU = "restart: manager's processor time per pod"
	rowLargeScrape   = "scrape of the manager's metrics, median"
	rowLargeSize     = "size of the manager's metrics"
	rowLargeMemory   = "manager's memory (RSS), 150,000 pods reported"
	rowLargePeak     = "manager's maximum memory (RSS) in all stages, 150,000 pods"
)

const (
	// fewPods and mostPods are the pods of the two markers that are edited. All others have otherPods.
	fewPods, mostPods, otherPods = 10, 10_000, 1000
	few, most                    = "few", "most"
)

// large is a cluster with 30 pods per node, and what it took to serve it.
type large struct {
	*harness.Bench
	server  *harness.Server
	cluster fixture.Cluster
	most    int
	manager *harness.Program
	agents  []*fixture.Agent
	plans   *planned

	planned, marked, edit, bareEdit, editMost, bareMost time.Duration
	editCPU, restart, start, startCPU, scrape           time.Duration
	size                                                int
	memory, peak                                        uint64
}

// measureLarge runs the manager in a cluster of 5,000 nodes, and in one of 100 nodes to compare.
func measureLarge(b *harness.Bench) harness.Output {
	var all []*large
	for _, nodes := range harness.Pick(b, []int{100, 5000}, []int{2, 4}) {
		b.Part(fmt.Sprintf("%d nodes", nodes), func(b *harness.Bench) {
			c := &large{Bench: b, server: b.Server(), most: harness.Pick(b, min(mostPods, 20*nodes), fewPods)}
			c.cluster = fixture.Cluster{Name: "large", Nodes: nodes, Pods: 30 * nodes, Group: c.group}
			c.measure()
			all = append(all, c)
		})
	}
	return largeOutput(all[0], all[1])
}

// group returns the group of a pod. The first ones are those of the markers that are edited.
func (c *large) group(pod int) string {
	switch {
	case pod < fewPods:
		return few
	case pod < fewPods+c.most:
		return most
	}
	return strconv.Itoa(pod / otherPods)
}

// measure runs all stages.
func (c *large) measure() {
	c.create()
	c.plans = followPlans(c.Bench, c.server)
	c.manager = c.server.Manager()
	c.planned = c.took(func() {
		c.plans.until(c.Bench, "all pods are planned", func() bool { return c.plans.pods == c.cluster.Pods })
		// The references to the plans are written after them.
		fixture.Planned(c.Bench, c.server, c.cluster.Pods)
	})
	c.Logf("planned after %s", c.planned)
	c.prepare()
	c.marked = c.took(func() {
		c.Each(len(c.agents), harness.Clients, func(ctx context.Context, i int) error { return c.agents[i].TakeOver(ctx) })
		c.awaitMarks()
	})
	c.Logf("marked after %s", c.marked)
	c.settle()
	c.memory = c.manager.Usage().RSS
	c.edits()
	c.settle()
	c.scrapes()
	c.peak = c.manager.Usage().Peak
	c.restarts()
	c.peak = max(c.peak, c.manager.Usage().Peak)
	c.manager.Stop()
	c.bareEdit, c.bareMost = c.bare(few, fewPods), c.bare(most, c.most)
}

func (c *large) took(work func()) time.Duration {
	began := time.Now()
	work()
	return time.Since(began)
}

// awaitMarks waits until the pods of both markers have their marks.
func (c *large) awaitMarks() {
	c.Helper()
	c.Until("the pods are marked", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		found := &metav1.PartialObjectMetadataList{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := c.server.Client.List(ctx, found, client.InNamespace(fixture.Namespace), client.MatchingLabels{fixture.Mark: fixture.Up})
		return len(found.Items) == fewPods+c.most, err
	})
}

// settle gives the manager time to write the statuses of markers.
func (c *large) settle() { c.Idle(harness.Pick(c.Bench, 30*time.Second, time.Second)) }

// create creates nodes, pods and markers.
func (c *large) create() {
	c.Helper()
	c.cluster.CreateNodes(c.Bench, c.server)
	c.cluster.Store(c.Bench, c.server)
	groups := map[string]bool{}
	for pod := range c.cluster.Pods {
		groups[c.group(pod)] = true
	}
	for group := range groups {
		fixture.CreateMarker(c.Bench, c.server, group, func(probe *v1alpha1.PodContainerProbe) {
			if group != few && group != most {
				// The pods succeed, and have no marks.
				probe.MarkerPolicy = slices.DeleteFunc(
					probe.MarkerPolicy, func(p v1alpha1.ProbeMarkerPolicy) bool { return p.State == v1alpha1.ProbeSucceeded },
				)
			}
		})
	}
}

// prepare creates the agents of all nodes.
func (c *large) prepare() {
	c.Helper()
	plans, err := fixture.Plans(c.Context(), c.server)
	c.Must(err)
	for _, plan := range plans {
		c.agents = append(c.agents, fixture.AgentOf(c.server.Raw, plan, fixture.DefaultSlice))
	}
}

// edits changes the period of the markers' probes, one after the other.
func (c *large) edits() {
	c.Helper()
	n, before := harness.Pick(c.Bench, 20, 2), c.manager.Usage().CPU
	var times []float64
	for i := range n {
		times = append(times, c.change(few, fewPods, int32(20+i)).Seconds()) //nolint:gosec // At most 40.
	}
	c.Logf("edits of %d pods: %v s", fewPods, times)
	c.edit = time.Duration(harness.Percentile(times, 0.5) * float64(time.Second))
	c.editCPU = (c.manager.Usage().CPU - before) / time.Duration(n)
	c.editMost = c.change(most, c.most, 20)
	c.Logf("edit of %d pods: %s", c.most, c.editMost)
}

// change sets the period of the marker's probe, and returns the time until the plans of all its pods have it.
func (c *large) change(name string, pods int, period int32) time.Duration {
	c.Helper()
	marker := &v1alpha1.PodProbeMarker{}
	c.Must(c.server.Client.Get(c.Context(), client.ObjectKey{Namespace: fixture.Namespace, Name: name}, marker))
	before := marker.DeepCopy()
	marker.Spec.Probes[0].Probe.PeriodSeconds = period
	return c.took(func() {
		// An update would meet conflicts with the manager's writes of the status.
		c.Must(c.server.Client.Patch(c.Context(), marker, client.MergeFrom(before)))
		key := fmt.Sprintf("%s %d", name, period)
		c.plans.until(c.Bench, "the plans of "+name+" have the period", func() bool { return c.plans.periods[key] == pods })
	})
}

// bare returns the time that the writes take which the plans of the marker's pods need: those of the slices and of the nodes'
// references.
func (c *large) bare(name string, pods int) time.Duration {
	c.Helper()
	plans := c.plans.of(name)
	nodes := map[string]bool{}
	for _, plan := range plans {
		// The followed copy may be older than the writes of the other marker, which shares plans in a small cluster.
		c.Must(c.server.Client.Get(c.Context(), client.ObjectKeyFromObject(plan), plan))
		nodes[plan.NodeName] = true
	}
	var references []*v1alpha1.NodePodProbe
	for node := range nodes {
		npp := &v1alpha1.NodePodProbe{}
		c.Must(c.server.Client.Get(c.Context(), client.ObjectKey{Name: node}, npp))
		references = append(references, npp)
	}
	c.Logf("%s: %d pods in %d slices of %d nodes", name, pods, len(plans), len(references))
	return c.took(func() {
		c.Each(len(plans), harness.Clients, func(ctx context.Context, i int) error {
			plans[i].Pods[0].Probes[0].Probe.PeriodSeconds++
			return c.server.Client.Update(ctx, plans[i])
		})
		c.Each(len(references), harness.Clients, func(ctx context.Context, i int) error {
			metav1.SetMetaDataAnnotation(&references[i].ObjectMeta, fixture.BareLabel, "1")
			return c.server.Client.Update(ctx, references[i])
		})
	})
}

// scrapes reads the metrics several times.
func (c *large) scrapes() {
	c.Helper()
	var times []float64
	for range harness.Pick(c.Bench, 20, 2) {
		times = append(times, c.took(func() {
			var err error
			c.size, err = c.manager.Scrape(c.Context())
			c.Must(err)
		}).Seconds())
	}
	c.scrape = time.Duration(harness.Percentile(times, 0.5) * float64(time.Second))
}

// restarts restarts the manager. While it is stopped, an agent reports a change.
func (c *large) restarts() {
	c.Helper()
	seen := make(chan time.Time, 1)
	name := c.agents[0].Pods[0].Name
	fixture.Follow(c.Bench, c.server, &corev1.PodList{}, func(event watch.Event) {
		if pod, is := event.Object.(*corev1.Pod); is && pod.Labels[fixture.Mark] == fixture.Down {
			select {
			case seen <- time.Now():
			default:
			}
		}
	}, client.InNamespace(fixture.Namespace), client.MatchingFields{"metadata.name": name})
	c.manager.Stop()
	c.agents[0].Toggle(0)
	c.Must(c.agents[0].Write(c.Context(), c.agents[0].SliceOf(0)))
	began := time.Now()
	c.manager.Start()
	select {
	case at := <-seen:
		c.restart = at.Sub(began)
	case <-time.After(15 * time.Minute):
		c.Fatalf("pod %s is not marked after the restart", name)
	}
	c.Until("all pods are decided", 200*time.Millisecond, c.decided)
	c.start, c.startCPU = time.Since(began), c.manager.Usage().CPU
	c.Logf("restarted: marked after %s, all decided after %s", c.restart, c.start)
}

// decided reports whether the manager has reconciled as many pods as there are, and has none left.
func (c *large) decided(ctx context.Context) (bool, error) {
	all, err := c.manager.Families(ctx)
	if err != nil {
		return false, nil //nolint:nilerr // The server of the metrics may not run yet.
	}
	done := harness.Sum(all, "controller_runtime_reconcile_total", "controller", "podmark")
	return int(done) >= c.cluster.Pods && harness.Sum(all, "workqueue_depth", "controller", "podmark") == 0, nil
}

func largeOutput(small, c *large) harness.Output {
	const floor = "bare writes of the same plans"
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	perPod := func(c *large) float64 { return ms(c.startCPU) / float64(c.cluster.Pods) }
	smaller := fmt.Sprintf("%d nodes", small.cluster.Nodes)
	return harness.Output{
		Results: []harness.Result{
			{Name: rowLargePlans, Value: c.planned.Seconds(), Unit: "s"},
			{Name: rowLargeMarks, Value: c.marked.Seconds(), Unit: "s"},
			{Name: rowLargeEdit, Value: ms(c.edit), Unit: "ms", Floor: ms(small.edit), FloorName: smaller, Budget: harness.RatioAtMost(1.5)},
			{
				Name: rowLargeEditCPU, Value: ms(c.editCPU), Unit: "ms", Floor: harness.Positive(ms(small.editCPU)), FloorName: smaller,
				Budget: harness.RatioAtMost(2),
			},
			{Name: rowLargeEditMost, Value: c.editMost.Seconds(), Unit: "s", Floor: c.bareMost.Seconds(), FloorName: floor, Budget: harness.RatioAtMost(1.5)},
			{Name: rowLargeRestart, Value: c.restart.Seconds(), Unit: "s"},
			{Name: rowLargeStart, Value: c.start.Seconds(), Unit: "s"},
			{
				Name: rowLargeStartCPU, Value: perPod(c), Unit: "ms", Floor: harness.Positive(perPod(small)), FloorName: smaller,
				Budget: harness.RatioAtMost(1.2),
			},
			{Name: rowLargeScrape, Value: ms(c.scrape), Unit: "ms", Budget: harness.AtMost(1000)},
			{Name: rowLargeSize, Value: float64(c.size) / 1024, Unit: "KiB"},
			{Name: rowLargeMemory, Value: float64(c.memory) / harness.Mebibyte, Unit: "MiB"},
			{Name: rowLargePeak, Value: float64(c.peak) / harness.Mebibyte, Unit: "MiB", Budget: harness.AtMost(2048)},
		},
		Notes: []string{fmt.Sprintf("%d nodes with %d pods; the markers select %d pods each, except two with %d and %d. The smaller cluster has %d nodes and %d pods. "+
			"An edit of 10 pods takes bare writes %.0f ms.",
			c.cluster.Nodes, c.cluster.Pods, otherPods, fewPods, c.most, small.cluster.Nodes, small.cluster.Pods, ms(c.bareEdit))},
	}
}
