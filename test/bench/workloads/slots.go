// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows about the slots of 20 sets on 5,000 nodes, without an API server.
const (
	rowNodeSame     = "a node changes, and nothing of it matters, 20 sets on 5,000 nodes"
	rowNodeSameSets = "sets that such a change concerns"
	rowNodeTaint    = "a node gets or loses a taint that concerns 20 sets on 5,000 nodes"
	rowPodEvent     = "a pod becomes ready or not ready, 20 sets on 5,000 nodes"
	rowPodEventFlat = "the same, compared with as many pods on 500 nodes"
	rowPodEventFew  = "the same, compared with a tenth of the pods"
	rowPodPlan      = "the same with the next step of the set"
	rowSlotMemory   = "memory per node and set"
	rowNodeMemory   = "memory per node in the cache"
)

const (
	slotSets  = 20
	manyNodes = 5000
	fewNodes  = 500
	// slotEvents is the number of changes of pods in a round.
	slotEvents = 5000
	// stride is the distance of the nodes of changes that follow each other. It visits all nodes.
	stride = 1999
	// firstVersion is less than the resource version of any pod.
	firstVersion  = 1_000_000
	slotNamespace = "slots"
)

// slotRounds is the number of rounds, of which the fastest is the result: other programs only make the others slower.
func slotRounds(b *harness.Bench) int { return harness.Pick(b, 9, 3) }

// slotRows are the rows in their order.
func slotRows() []string {
	return []string{
		rowNodeSame, rowNodeSameSets, rowNodeTaint, rowPodEvent, rowPodEventFlat, rowPodEventFew, rowPodPlan, rowSlotMemory, rowNodeMemory,
	}
}

// engine are the slots of sets that have a ready pod on each node.
type engine struct {
	*harness.Bench
	slots *daemonset.Slots
	now   time.Time
	sets  []*v1alpha1.DaemonSet
	in    []planning.Input
	nodes []*corev1.Node
	// pods are those of each set, by node.
	pods map[types.UID][]*corev1.Pod
	// version is the last resource version of a pod, and events the number of changes of pods.
	version, events int
	// perNode is the memory of a node in the cache, and perSlot that of a node and set, in bytes.
	perNode, perSlot float64
}

// measureSlots measures the slots of many and of few nodes in turn. Those of as many pods on few nodes take as much memory
// as those of many nodes: the time of an event grows with it, since the processor's caches do not have all slots.
func measureSlots(b *harness.Bench) []harness.Result {
	b.Helper()
	const ratio = manyNodes / fewNodes
	engines := []*engine{newEngine(b, manyNodes, slotSets), newEngine(b, fewNodes, ratio*slotSets), newEngine(b, fewNodes, slotSets)}
	many := engines[0]
	same, concerned := many.same()
	taint := many.taints()
	events, plans := make([][]float64, len(engines)), make([][]float64, len(engines))
	for range slotRounds(b) {
		for i, e := range engines {
			events[i] = append(events[i], e.podEvents(false))
			plans[i] = append(plans[i], e.podEvents(true))
		}
	}
	row := func(name string, value float64, unit string, budget *harness.Budget) harness.Result {
		return harness.Result{Name: name, Value: value, Unit: unit, Budget: budget}
	}
	compared := func(name string, rounds [][]float64, i int, floor string, budget *harness.Budget) harness.Result {
		return harness.Result{Name: name, Value: slices.Min(rounds[0]), Unit: "µs", Floor: slices.Min(rounds[i]), FloorName: floor, Budget: budget}
	}
	return []harness.Result{
		row(rowNodeSame, same, "µs", harness.AtMost(1)),
		row(rowNodeSameSets, float64(concerned), "", harness.AtMost(0)),
		row(rowNodeTaint, taint, "µs", harness.AtMost(100)),
		row(rowPodEvent, slices.Min(events[0]), "µs", harness.AtMost(10)),
		compared(rowPodEventFlat, events, 1, "200 sets, 500 nodes", harness.RatioAtMost(1.2)),
		compared(rowPodEventFew, events, 2, "20 sets, 500 nodes", nil),
		compared(rowPodPlan, plans, 1, "200 sets, 500 nodes", nil),
		row(rowSlotMemory, many.perSlot, "B", harness.AtMost(200)),
		row(rowNodeMemory, many.perNode, "B", harness.AtMost(1536)),
	}
}

// newEngine returns the slots of sets on n nodes after the first step of each set.
func newEngine(b *harness.Bench, n, sets int) *engine {
	b.Helper()
	e := &engine{Bench: b, now: time.Now(), pods: map[types.UID][]*corev1.Pod{}, version: firstVersion}
	e.nodes = make([]*corev1.Node, n)
	before := heap()
	for i := range e.nodes {
		e.nodes[i] = trim.Node(wholeNode(b, i))
	}
	e.perNode = max(0, float64(heap())-float64(before)) / float64(n)
	e.slots = daemonset.NewSlots(daemonset.Cache{
		Nodes:   func() []*corev1.Node { return e.nodes },
		Pods:    func(set owner.Key) []*corev1.Pod { return e.pods[set.UID] },
		Version: func() string { return strconv.Itoa(e.version) },
	})
	for i := range sets {
		e.add(i)
	}
	before = heap()
	for i := range e.sets {
		e.sets[i].Status = e.step(i).Status
	}
	e.perSlot = max(0, float64(heap())-float64(before)) / float64(n*sets)
	if status := e.sets[0].Status; int(status.NumberAvailable) != n || int(status.UpdatedNumberScheduled) != n {
		e.Fatalf("status after the first step: %+v", status)
	}
	return e
}

// heap returns the memory that is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// wholeNode returns a node with the labels, images and conditions of typical ones, decoded as a client does.
func wholeNode(b *harness.Bench, i int) *corev1.Node {
	b.Helper()
	name := fmt.Sprintf("node-%04d", i)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "1", Labels: map[string]string{}}}
	for _, key := range []string{
		"beta.kubernetes.io/arch", "beta.kubernetes.io/os", corev1.LabelArchStable, corev1.LabelOSStable,
		corev1.LabelInstanceTypeStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
	} {
		node.Labels[key] = "of-many-nodes"
	}
	node.Labels[corev1.LabelHostname] = name
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletReports"})
	}
	for image := range 50 {
		node.Status.Images = append(
			node.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/team/image-%d@%s", image, name)}},
		)
	}
	encoded, err := node.Marshal()
	b.Must(err)
	decoded := &corev1.Node{}
	b.Must(decoded.Unmarshal(encoded))
	return decoded
}

// add adds a set with its revision and pods. Nothing has changed since the pods became ready an hour ago.
func (e *engine) add(i int) {
	e.Helper()
	name := setName(i)
	template := fixture.Pod("", "", "", "")
	labels := map[string]string{"set": name}
	set := &v1alpha1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: slotNamespace, Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec: v1alpha1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
			UpdateStrategy: v1alpha1.DaemonSetUpdateStrategy{
				Type:          v1alpha1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString(daemonBudget))},
			},
		},
	}
	in := planning.Input{Encoder: &revision.Encoder{}, Now: e.now}
	empty := daemonset.NewSlots(daemonset.Cache{
		Nodes: func() []*corev1.Node { return nil }, Pods: func(owner.Key) []*corev1.Pod { return nil }, Version: func() string { return "" },
	})
	out, err := empty.Plan(set, in)
	e.Must(err)
	in.Revisions = []*appsv1.ControllerRevision{out.CreateRevision}
	e.sets, e.in = append(e.sets, set), append(e.in, in)
	owner := metav1.NewControllerRef(set, daemonset.Kind())
	since := metav1.NewTime(e.now.Add(-time.Hour))
	for _, node := range e.nodes {
		e.version++
		e.pods[set.UID] = append(e.pods[set.UID], &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: slotNamespace, Name: name + "-" + node.Name, UID: types.UID(name + "/" + node.Name), ResourceVersion: strconv.Itoa(e.version),
				Labels:          map[string]string{"set": name, appsv1.ControllerRevisionHashLabelKey: revision.Hash(out.CreateRevision.Name)},
				OwnerReferences: []metav1.OwnerReference{*owner}, CreationTimestamp: since,
			},
			Spec:   corev1.PodSpec{NodeName: node.Name},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: readySince(since, corev1.ConditionTrue)},
		})
	}
}

func readySince(since metav1.Time, status corev1.ConditionStatus) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: since}}
}

// step plans the next step of a set. Whatever happens here, it writes nothing.
func (e *engine) step(i int) daemonset.Output {
	e.Helper()
	out, err := e.slots.Plan(e.sets[i], e.in[i])
	e.Must(err)
	if !out.Empty() {
		e.Fatalf("step of set %d: %+v", i, out.Actions)
	}
	return out
}

// timed returns the time of one call of n, in µs.
func timed(n int, do func(i int)) float64 {
	start := time.Now()
	for i := range n {
		do(i)
	}
	return float64(time.Since(start).Nanoseconds()) / 1000 / float64(n)
}

// same returns the time of a change of a node that does not matter, and the number of sets that all such changes
// concern.
func (e *engine) same() (took float64, concerned int) {
	after := make([]*corev1.Node, len(e.nodes))
	for i, node := range e.nodes {
		after[i] = node.DeepCopy()
		after[i].ResourceVersion = "2"
		after[i].Status.Conditions[0].Status = corev1.ConditionTrue
	}
	var rounds []float64
	for range slotRounds(e.Bench) {
		rounds = append(rounds, timed(len(after), func(i int) { concerned += len(e.slots.Node(e.nodes[i], after[i])) }))
	}
	return slices.Min(rounds), concerned
}

// taints returns the time of a change of the taints of a node that concerns all sets.
func (e *engine) taints() float64 {
	e.Helper()
	tainted := make([]*corev1.Node, len(e.nodes))
	for i, node := range e.nodes {
		tainted[i] = node.DeepCopy()
		tainted[i].Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}
	}
	var rounds []float64
	for range slotRounds(e.Bench) {
		concerned := 0
		rounds = append(rounds, timed(2*len(tainted), func(i int) {
			before, after := e.nodes[i/2], tainted[i/2]
			if i%2 == 1 {
				before, after = after, before
			}
			concerned += len(e.slots.Node(before, after))
		}))
		if want := 2 * len(tainted) * len(e.sets); concerned != want {
			e.Fatalf("taints concern %d sets, want %d", concerned, want)
		}
		for i := range e.sets {
			e.step(i)
		}
	}
	return slices.Min(rounds)
}

// podEvents returns the time of a change of a pod's readiness, with the next step of its set if step is true.
func (e *engine) podEvents(step bool) float64 {
	e.Helper()
	type change struct{ before, after *corev1.Pod }
	changes := make([]change, slotEvents)
	for i := range changes {
		pods := e.pods[e.sets[i%len(e.sets)].UID]
		known := &pods[e.events/len(e.sets)*stride%len(pods)]
		e.events++
		before, after := *known, **known
		e.version++
		after.ResourceVersion = strconv.Itoa(e.version)
		status := corev1.ConditionTrue
		if planning.Ready(before) {
			status = corev1.ConditionFalse
		}
		after.Status.Conditions = readySince(after.CreationTimestamp, status)
		changes[i], *known = change{before, &after}, &after
	}
	runtime.GC() // Not while the time is taken.
	took := timed(len(changes), func(i int) {
		e.slots.Pod(changes[i].before, changes[i].after)
		if step {
			e.step(i % len(e.sets))
		}
	})
	for i := range e.sets {
		e.step(i)
	}
	return took
}
