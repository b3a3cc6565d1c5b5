// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows of the measure of replaced pods.
const (
	rowReplaceWrites = "plan writes per replaced pod, one by one, 110 pods per node"
	rowReplaceCPU    = "API server's processor time per replaced pod, 110 pods per node"
	rowReplaceOwn    = "of this, caused by Seamark, mean of all sizes"
)

// step is the time between two steps of a pod's life. It is longer than the inputs of a plan must
// be unchanged, so that each step could cause a write.
const step = 150 * time.Millisecond

// replaced is the cost of one replaced pod: plan writes, and the API server's processor time in ms
// with and without Seamark. apply is that of one bare apply to a pod.
type replaced struct{ writes, cpu, bare, apply float64 }

// measureReplace replaces pods one by one on a small and on a full node, without and with the manager.
func measureReplace(b *harness.Bench) harness.Output {
	rounds := harness.Pick(b, 40, 2)
	var costs []replaced
	chart := harness.NewChart("API server's processor time per replaced pod", "pods per node", "ms", "with Seamark", "without Seamark")
	for _, size := range harness.Pick(b, []int{3, 30, 110}, []int{3, 6}) {
		b.Part(fmt.Sprintf("%d pods", size), func(b *harness.Bench) {
			costs = append(costs, measureNode(b, size, rounds))
			b.Logf("%+v", costs[len(costs)-1])
			chart.Add(float64(size), costs[len(costs)-1].cpu, costs[len(costs)-1].bare)
		})
	}
	small, large := costs[0], costs[len(costs)-1]
	// The cost does not depend on the size, and is the difference of large values: the mean has less noise.
	var own, apply float64
	for _, c := range costs {
		own += (c.cpu - c.bare) / float64(len(costs))
		apply += c.apply / float64(len(costs))
	}
	const floor = "3 pods per node"
	return harness.Output{
		Results: []harness.Result{
			{Name: rowReplaceWrites, Value: large.writes, Floor: harness.Positive(small.writes), FloorName: floor, Budget: harness.AtMost(3)},
			{Name: rowReplaceCPU, Value: large.cpu, Unit: "ms", Floor: harness.Positive(small.cpu), FloorName: floor, Budget: harness.RatioAtMost(1.3)},
			{
				Name: rowReplaceOwn, Value: own, Unit: "ms",
				Floor: harness.Positive(3 * apply), FloorName: "three bare pod applies", Budget: harness.RatioAtMost(1),
			},
		},
		Notes: []string{fmt.Sprintf("Each of %d pods is deleted, ends and is removed, and its successor is created, bound, started and running: "+
			"seven requests of users, scheduler and kubelet, each %s apart. The agent's write of the plan in force is included.", rounds, step)},
		Charts: []harness.Chart{chart},
	}
}

// replacer replaces the pods of one node in turn.
type replacer struct {
	*harness.Bench
	server  *harness.Server
	cluster fixture.Cluster
	alive   []string
	// agent is nil while no manager runs. generation is that of the plan.
	agent      *fixture.Agent
	generation atomic.Int64
}

// measureNode replaces pods of one node, without and then with the manager.
func measureNode(b *harness.Bench, size, rounds int) replaced {
	b.Helper()
	p := &replacer{Bench: b, server: b.Server(), cluster: fixture.Cluster{Name: "all", Nodes: 1, Pods: size}}
	for _, pod := range p.cluster.Create(b, p.server) {
		p.alive = append(p.alive, pod.Name)
	}
	fixture.CreateMarker(b, p.server, "all", func(probe *v1alpha1.PodContainerProbe) { probe.PodConditionType = fixture.Mark })
	_, bare := p.measure(rounds)
	manager := p.server.Manager()
	fixture.Planned(b, p.server, size)
	node := p.cluster.Node(0)
	p.follow(node)
	p.agent = fixture.NewAgent(b, p.server, fixture.AgentClient(b, p.server, node), node, fixture.DefaultSlice)
	writes, cpu := p.measure(rounds)
	manager.Stop()
	return replaced{writes: writes, cpu: cpu, bare: bare, apply: p.measureApply(size)}
}

// measureApply returns the API server's processor time per bare apply to one of the pods.
func (p *replacer) measureApply(pods int) float64 {
	p.Helper()
	// So many that their noise is well below that of the replaced pods.
	times := harness.Pick(p.Bench, max(4, 300/pods), 2)
	idle := p.server.Counted(func() { p.Idle(harness.Pick(p.Bench, 4*time.Second, time.Second)) })
	busy := p.server.Counted(func() {
		for range times {
			bareApply(p.Bench, p.server, pods)
		}
	}).Without(idle)
	return busy.CPU.Seconds() * 1000 / float64(times*pods)
}

// follow watches the NodePodProbe of the node and reads the ProbePlans to which it has new references, as
// an agent does.
func (p *replacer) follow(node string) {
	p.Helper()
	references, generations := map[int]string{}, map[int]int64{}
	fixture.Follow(p.Bench, p.server, &v1alpha1.NodePodProbeList{}, func(event watch.Event) {
		npp, ok := event.Object.(*v1alpha1.NodePodProbe)
		if !ok {
			return
		}
		next, valid := slicing.ParseReferences(npp.Annotations[v1alpha1.ProbePlansAnnotationKey])
		if !valid {
			p.Errorf("invalid references: %v", npp.Annotations)
		}
		sum := npp.Generation
		for number, version := range next {
			if references[number] != version {
				slice := &seamarkv1alpha1.ProbePlan{}
				err := p.server.Client.Get(p.Context(), client.ObjectKey{Name: seamarkv1alpha1.SliceName(node, number)}, slice,
					&client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: version}})
				if err != nil {
					p.Errorf("read slice %d: %v", number, err)
				}
				generations[number] = slice.Generation
			}
			sum += generations[number]
		}
		references = next
		p.generation.Store(sum)
	}, client.MatchingFields{"metadata.name": node})
}

// measure returns the plan writes and the processor time per replaced pod, without that of an idle
// API server.
func (p *replacer) measure(rounds int) (writes, cpu float64) {
	p.Helper()
	p.replace()
	idle := p.server.Counted(func() { p.Idle(harness.Pick(p.Bench, 30*time.Second, time.Second)) })
	busy := p.server.Counted(func() {
		for range rounds {
			p.replace()
		}
	}).Without(idle)
	return float64(
		busy.Requests.Writes("nodepodprobes", "")+busy.Requests.Writes("probeplans", ""),
	) / float64(rounds), busy.CPU.Seconds() / float64(rounds) * 1000
}

// replace acts as user, scheduler and kubelet for the oldest pod and its successor.
func (p *replacer) replace() {
	p.Helper()
	c, ctx := p.server.Client, p.Context()
	old := &corev1.Pod{}
	p.Must(c.Get(ctx, client.ObjectKey{Namespace: fixture.Namespace, Name: p.alive[0]}, old))
	pod := p.cluster.Pod(p.cluster.Pods)
	running := pod.Status
	pod.Spec.NodeName = ""
	ended := old.Status.DeepCopy()
	for i := range ended.ContainerStatuses {
		container := &ended.ContainerStatuses[i]
		container.Ready = false
		container.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", ContainerID: container.ContainerID}}
	}
	for _, do := range []func() error{
		func() error { return c.Delete(ctx, old) },
		func() error { return p.patchStatus(ctx, old, *ended) },
		func() error { return c.Delete(ctx, old, client.GracePeriodSeconds(0)) },
		func() error { return c.Create(ctx, pod) },
		func() error {
			binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: p.cluster.Node(0)}}
			return c.SubResource("binding").Create(ctx, pod, binding)
		},
		func() error { return p.patchStatus(ctx, pod, fixture.Starting()) },
		func() error { return p.patchStatus(ctx, pod, running) },
	} {
		p.Must(do())
		p.Idle(step)
	}
	p.alive = append(p.alive[1:], pod.Name)
	p.cluster.Pods++
	if p.agent != nil {
		p.Must(p.agent.InForce(ctx, p.generation.Load()))
	}
}

// patchStatus writes the status as a kubelet does.
func (p *replacer) patchStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	before := pod.DeepCopy()
	pod.Status = status
	return p.server.Client.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)) //nolint:wrapcheck // Must prints it.
}
