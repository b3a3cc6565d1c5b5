// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows about a set on 5,000 nodes besides those of the stages.
const (
	rowEvicted       = "a node of 5,000 gets a taint: until its pod is deleted, p50 of 5"
	rowDaemonRestart = "writes of a restart with 5,000 nodes and nothing to change"
	rowDaemonPlanned = "time from the start of the process until the set is reconciled"
	rowDaemonStart   = "time from the start of the process until a missing pod is created"
	rowDaemonMemory  = "memory (RSS) with 5,000 nodes"
)

const (
	// daemonBudget is maxUnavailable or maxSurge of all updates.
	daemonBudget = "25%"
	// peerDaemonSet is the name of the peer in tables.
	peerDaemonSet = "DaemonSet"
)

// daemonStage is a change of the set. An empty patch creates it.
type daemonStage struct{ title, patch string }

func daemonStages() []daemonStage {
	image := `{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/team/main:%s"}`
	surge := `{"op":"replace","path":"/spec/updateStrategy/rollingUpdate","value":{"maxUnavailable":0,"maxSurge":"` + daemonBudget + `"}}`
	return []daemonStage{
		{"create 5,000 pods on as many nodes", ""},
		{"roll 5,000 pods, maxUnavailable 25%", "[" + fmt.Sprintf(image, "1.2.4") + "]"},
		{"roll 5,000 pods, maxSurge 25%", "[" + surge + "," + fmt.Sprintf(image, "1.2.5") + "]"},
	}
}

func daemonRows() []string {
	rows := slotRows()
	for _, stage := range daemonStages() {
		for _, r := range results(stage.title, peerDaemonSet, cost{}, cost{}, nil) {
			rows = append(rows, r.Name)
		}
	}
	return append(rows, rowEvicted, rowDaemonRestart, rowDaemonPlanned, rowDaemonStart, rowDaemonMemory)
}

// daemons is a side with nodes and one set.
type daemons struct {
	*station
	kind  kind
	nodes int

	mu sync.Mutex
	// created and deleted are when the last pod of a node was, as a watch shows it.
	created, deleted map[string]time.Time
}

// measureDaemonSets measures the slots, and then compares DaemonSets with those of Kubernetes. Both sides have an API
// server of their own and are measured in turn, as those of other sets, and the medians are compared.
func measureDaemonSets(b *harness.Bench) harness.Output {
	out := harness.Output{Results: measureSlots(b)}
	peer := openDaemons(b, builtinDaemonSet(), "kube-controller-manager", func(s *harness.Server) *harness.Program {
		return s.ControllerManager("daemonset-controller")
	})
	ours := openDaemons(b, advancedDaemonSet(), "seamark-workloads", (*harness.Server).DaemonSets)
	played := playDaemons(b, []*daemons{peer, ours})
	for i, stage := range daemonStages() {
		theirs, mine := median(played[0][i]), median(played[1][i])
		stageRows := results(stage.title, peerDaemonSet, mine, theirs, harness.RatioAtMost(0.25))
		stageRows[0].Noise = ratioNoise(played[1][i], played[0][i])
		out.Results = append(out.Results, stageRows...)
		out.Notes = append(out.Notes, fmt.Sprintf("Writes to %s: Seamark %s; %s %s.", stage.title, list(mine.writes), peerDaemonSet, list(theirs.writes)))
	}
	peerEvicted, evicted := peer.evicted(), ours.evicted()
	peerStart, start := peer.missing(), ours.missing()
	peer.restart(func() {})
	planned, writes := ours.restart(func() { ours.controller.Runs(reconciles, 1) })
	memory := func(d *daemons) float64 { return float64(d.controller.Usage().RSS) / harness.Mebibyte }
	out.Results = append(out.Results, []harness.Result{
		{Name: rowEvicted, Value: evicted, Unit: "ms", Floor: peerEvicted, FloorName: peerDaemonSet, Budget: harness.AtMost(50)},
		{Name: rowDaemonRestart, Value: float64(writes), Budget: harness.AtMost(0)},
		{Name: rowDaemonPlanned, Value: planned.Seconds(), Unit: "s", Budget: harness.AtMost(1)},
		{Name: rowDaemonStart, Value: start, Unit: "s", Floor: peerStart, FloorName: peerDaemonSet},
		{Name: rowDaemonMemory, Value: memory(ours), Unit: "MiB", Floor: memory(peer), FloorName: peerDaemonSet},
	}...)
	return out
}

// playDaemons returns the costs of all rounds, by side and stage. The side that is first changes.
func playDaemons(b *harness.Bench, sides []*daemons) [2][][]cost {
	b.Helper()
	played := [2][][]cost{make([][]cost, len(daemonStages())), make([][]cost, len(daemonStages()))}
	for round := range rounds(b) {
		if round > 0 {
			for _, d := range sides {
				d.reset(d.kind)
			}
		}
		for i, stage := range daemonStages() {
			for n := range sides {
				j := (n + i + round) % len(sides)
				rest(b, sides)
				played[j][i] = append(played[j][i], sides[j].play(stage))
			}
		}
	}
	return played
}

// rest waits until the API servers are idle: what a stage has left, such as the deletion of thousands of pods, is not part of the next one.
func rest(b *harness.Bench, sides []*daemons) {
	b.Helper()
	b.Until("idle API servers", time.Millisecond, func(context.Context) (bool, error) {
		for _, d := range sides {
			counted := d.server.Counted(func() { b.Idle(time.Second) }) //nolint:contextcheck // It is that of the measure.
			if counted.CPU > counted.Took/5 {
				return false, nil
			}
		}
		return true, nil
	})
}

// ratioNoise returns the noise of the ratio of the times.
func ratioNoise(ours, theirs []cost) float64 {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i].took.Seconds() / theirs[i].took.Seconds()
	}
	return halfRange(ratios)
}

// openDaemons starts a side, warms it up, and creates all nodes.
func openDaemons(b *harness.Bench, k kind, name string, start func(*harness.Server) *harness.Program) *daemons {
	b.Helper()
	d := &daemons{
		station: newStation(b, side{name: name, start: start}, k), kind: k, nodes: harness.Pick(b, manyNodes, 20),
		created: map[string]time.Time{}, deleted: map[string]time.Time{},
	}
	fixture.Follow(b, d.server, &corev1.PodList{}, d.see, client.InNamespace(fixture.Namespace))
	warm := warmPods(b)
	d.addNodes(0, warm)
	d.create(k, shape{1, warm})
	d.reset(k)
	d.addNodes(warm, d.nodes)
	return d
}

func (d *daemons) node(i int) string { return fmt.Sprintf("node-%04d", i) }

// addNodes creates nodes without taints: an admission plugin adds one to each new node.
func (d *daemons) addNodes(from, to int) {
	d.Helper()
	d.Each(to-from, harness.Clients, func(ctx context.Context, i int) error {
		name := d.node(from + i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelTopologyZone: "zone-1",
		}}}
		if err := d.server.Client.Create(ctx, node); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
		return d.taint(ctx, from+i, "null")
	})
}

// taint replaces the taints of a node by those in JSON.
func (d *daemons) taint(ctx context.Context, i int, taints string) error {
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: d.node(i)}}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := d.server.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":`+taints+`}}`))); err != nil {
		return fmt.Errorf("replace the taints of a node: %w", err)
	}
	return nil
}

// see notes when pods are created and deleted.
func (d *daemons) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch node := nodefit.Target(pod); {
	case event.Type == watch.Added:
		d.created[node] = time.Now()
	case event.Type == watch.Deleted || pod.DeletionTimestamp != nil:
		d.deleted[node] = time.Now()
	}
}

// after waits until a time of the node is after start, and returns how long after.
func (d *daemons) after(what string, start time.Time, node string, times map[string]time.Time) (took time.Duration) {
	d.Helper()
	d.Until(what, 2*time.Millisecond, func(context.Context) (bool, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		took = times[node].Sub(start)
		return took > 0, nil
	})
	return took
}

// all waits until n nodes have a pod that is ready and of the update revision, and no other ones.
func (d *daemons) all(n int) {
	d.Helper()
	d.until(d.kind, shape{1, n}, true)
	// The status of a node with two pods may be that of the new one.
	d.Until("old pods are deleted", 10*time.Millisecond, func(context.Context) (bool, error) { return d.kubelets.pods() == n, nil })
}

// play runs a stage.
func (d *daemons) play(stage daemonStage) cost {
	d.Helper()
	c := d.cost(1, d.kind, func() {
		if stage.patch == "" {
			d.create(d.kind, shape{1, d.nodes})
		} else {
			d.patch(d.kind, 1, types.JSONPatchType, stage.patch)
		}
		d.all(d.nodes)
	})
	d.Logf(
		"%s, %s: %.1f s, API server %.1f s, controller %.1f s, writes %v", d.name, stage.title, c.took.Seconds(), c.apiServer.Seconds(),
		c.controller.Seconds(), c.writes,
	)
	return c
}

// evicted returns how long the pod of a node stays that gets a taint, in ms.
func (d *daemons) evicted() float64 {
	d.Helper()
	var times []float64
	for i := range 5 {
		start := time.Now()
		d.Must(d.taint(d.Context(), i, `[{"key":"maintenance","effect":"NoExecute"}]`))
		took := d.after("the pod of a node with a taint is deleted", start, d.node(i), d.deleted)
		times = append(times, took.Seconds()*1000)
		d.all(d.nodes - 1)
		d.Must(d.taint(d.Context(), i, "null"))
		d.all(d.nodes)
		d.Idle(d.settled())
	}
	d.Logf("%s, a taint: %v ms", d.name, times)
	return harness.Percentile(times, 0.5)
}

// missing returns how long after the start of the program a pod is created that was deleted before, in seconds.
func (d *daemons) missing() float64 {
	d.Helper()
	d.controller.Stop()
	pods := &corev1.PodList{}
	d.Must(d.server.Client.List(d.Context(), pods, client.InNamespace(fixture.Namespace), client.Limit(1)))
	d.Must(d.server.Client.Delete(d.Context(), &pods.Items[0]))
	start := time.Now()
	d.controller.Restart()
	took := d.after("the missing pod is created", start, pods.Items[0].Spec.NodeName, d.created)
	d.all(d.nodes)
	d.Idle(d.settled())
	return took.Seconds()
}

// restart restarts the program, and returns how long it takes until it is ready, and its writes. ready waits until it is.
func (d *daemons) restart(ready func()) (took time.Duration, writes int) {
	d.Helper()
	d.controller.Stop()
	counted := d.server.Counted(func() {
		start := time.Now()
		d.controller.Restart()
		ready()
		took = time.Since(start)
		d.Idle(harness.Pick(d.Bench, 20*time.Second, 3*time.Second))
	})
	return took, cost{writes: writesOf(counted.Requests)}.total()
}
