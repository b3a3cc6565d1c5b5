// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows of the measure of the manager's resources.
const (
	rowCPU          = "manager's processor time per marked pod, 3,000 pods"
	rowCPULarge     = "manager's processor time per marked pod, 30,000 pods"
	rowMemory       = "manager's memory (RSS), 3,000 pods marked"
	rowMemoryLarge  = "manager's memory (RSS), 30,000 pods marked"
	rowPeakLarge    = "manager's maximum memory (RSS) in all stages, 30,000 pods"
	rowMemoryPerPod = "memory per pod from 10,000 to 30,000 pods"
	rowStart        = "manager's processor time per pod at the start, 30,000 pods"
	rowStatusWrites = "status writes per marker and 2 seconds while all states change, 300 markers with 100 pods each"
)

const (
	// podsPerMarker is how many pods each marker selects.
	podsPerMarker = 100
	// statusInterval is the shortest time between two status writes of a marker.
	statusInterval = 2 * time.Second
)

// The stages by index.
const (
	stageStart = iota
	stageMarked
	stageIdle
	stageChanged
)

// stage is what the manager used in a stage.
type stage struct {
	name string
	took time.Duration
	harness.Usage
}

// resources is what the manager uses for a number of pods.
type resources struct {
	pods, nodes, markers int
	stages               []stage
	// statusWrites are those of markers while all states change.
	statusWrites int
	// bare is the processor time of a client per bare apply, in milliseconds.
	bare float64
}

func measureResources(b *harness.Bench) harness.Output {
	var all []resources
	for _, pods := range harness.Pick(b, []int{3_000, 10_000, 30_000}, []int{60, 120, 240}) {
		// Each size has its own server, which stops before the next one starts.
		b.Part(fmt.Sprintf("%d pods", pods), func(b *harness.Bench) { all = append(all, measureSize(b, pods)) })
	}
	return resourcesOutput(all)
}

// measureSize runs all stages with a number of pods, 30 per node.
func measureSize(b *harness.Bench, pods int) resources {
	b.Helper()
	out := resources{pods: pods, nodes: max(1, pods/30), markers: max(1, pods/podsPerMarker)}
	group := func(pod int) string { return strconv.Itoa(pod % out.markers) }
	s, c := b.Server(), fixture.Cluster{Name: "node", Nodes: out.nodes, Pods: pods, Group: group}
	c.Create(b, s)
	for i := range out.markers {
		fixture.CreateMarker(b, s, group(i), func(probe *v1alpha1.PodContainerProbe) { probe.PodConditionType = fixture.Mark })
	}
	manager := s.Manager()
	run := func(name string, do func()) {
		before, began := manager.Usage(), time.Now()
		do()
		used := stage{name: name, took: time.Since(began), Usage: manager.Usage()}
		used.CPU -= before.CPU
		b.Log(used)
		out.stages = append(out.stages, used)
	}
	idle := func() { b.Idle(harness.Pick(b, 10*time.Second, time.Second)) }
	run("start, and all plans written", func() { fixture.Planned(b, s, pods) })
	agents := make([]*fixture.Agent, c.Nodes)
	for i := range agents {
		agents[i] = fixture.NewAgent(b, s, s.Raw, c.Node(i), fixture.DefaultSlice)
	}
	run("all states are reported at once, all pods marked", func() {
		b.Each(len(agents), harness.Clients, func(ctx context.Context, i int) error { return agents[i].TakeOver(ctx) })
		marked(b, s, fixture.Up)
	})
	run("no changes", idle)
	out.statusWrites = s.Counted(func() {
		run("all states change at once", func() {
			b.Each(len(agents), harness.Clients, func(ctx context.Context, i int) error {
				for pod := range agents[i].Pods {
					agents[i].Toggle(pod)
				}
				return agents[i].WriteAll(ctx)
			})
			marked(b, s, fixture.Down)
		})
	}).Requests.Writes("podprobemarkers", "status")
	run("no changes again", idle)
	manager.Restart()
	run("restarted, then no changes", idle)
	manager.Stop()
	out.bare = bareApply(b, s, harness.Pick(b, 1000, 20))
	return out
}

// String describes the stage.
func (s stage) String() string {
	return fmt.Sprintf("%s: %.0f s, %d MiB (maximum %d MiB), %.1f s of processor time",
		s.name, s.took.Seconds(), s.RSS/harness.Mebibyte, s.Peak/harness.Mebibyte, s.CPU.Seconds())
}

// marked waits until every pod has the mark. It asks for one pod that does not have it, which costs
// the API server little.
func marked(b *harness.Bench, s *harness.Server, value string) {
	b.Helper()
	without, err := labels.NewRequirement(fixture.Mark, selection.NotEquals, []string{value})
	b.Must(err)
	b.Until("all pods are marked", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		rest := &metav1.PartialObjectMetadataList{}
		rest.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := s.Client.List(ctx, rest, client.InNamespace(fixture.Namespace), client.Limit(1),
			client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*without)})
		return err == nil && len(rest.Items) == 0, err
	})
}

// bareApply applies a label and a condition to pods one after the other, as the manager does, and
// returns the processor time of this client per pod in milliseconds.
func bareApply(b *harness.Bench, s *harness.Server, n int) float64 {
	b.Helper()
	writer, err := metadata.NewForConfig(metadata.ConfigFor(s.ManagerConfig()))
	b.Must(err)
	pods, list := apply.NewPods(writer), &corev1.PodList{}
	b.Must(s.Client.List(b.Context(), list, client.InNamespace(fixture.Namespace), client.Limit(int64(n))))
	before := harness.CPUTime()
	for i := range list.Items {
		_, err := pods.Marks(b.Context(), &list.Items[i], mark.Marks{
			mark.Label(fixture.Mark):         {Text: "bare"},
			mark.ConditionType(fixture.Mark): {Condition: mark.Condition{Status: corev1.ConditionTrue, Message: "3 of 16 players are connected"}},
		})
		b.Must(err)
	}
	return (harness.CPUTime() - before).Seconds() * 1000 / float64(max(1, len(list.Items)))
}

// perMark returns the processor time per marked pod, in milliseconds.
func (u resources) perMark() float64 {
	return (u.stages[stageMarked].CPU + u.stages[stageChanged].CPU).Seconds() * 1000 / float64(2*u.pods)
}

// atStart returns the processor time per pod at the start, in milliseconds.
func (u resources) atStart() float64 {
	return u.stages[stageStart].CPU.Seconds() * 1000 / float64(u.pods)
}

// statusRate returns the status writes per marker and statusInterval while all states change.
func (u resources) statusRate() float64 {
	intervals := max(1, u.stages[stageChanged].took.Seconds()/statusInterval.Seconds())
	return float64(u.statusWrites) / float64(u.markers) / intervals
}

// memory returns the larger of the memory after all pods were marked the first and the second time,
// in MiB.
func (u resources) memory() float64 {
	return float64(max(u.stages[stageMarked].RSS, u.stages[stageChanged].RSS)) / harness.Mebibyte
}

// peak returns the maximum memory in all stages, in MiB.
func (u resources) peak() float64 {
	peak := uint64(0)
	for _, s := range u.stages {
		peak = max(peak, s.Peak)
	}
	return float64(peak) / harness.Mebibyte
}

func resourcesOutput(all []resources) harness.Output {
	small, middle, large := all[0], all[1], all[2]
	perPod := func(a, b resources) float64 { return (b.memory() - a.memory()) * 1024 / float64(b.pods-a.pods) }
	const client = "client of one bare apply"
	chart := harness.NewChart("Memory (RSS) of the manager", "probed pods", "MiB", "all pods marked", "maximum in all stages")
	for _, u := range all {
		chart.Add(float64(u.pods), u.memory(), u.peak())
	}
	var stages []string
	for _, s := range large.stages {
		stages = append(stages, s.String())
	}
	return harness.Output{
		Results: []harness.Result{
			{Name: rowCPU, Value: small.perMark(), Unit: "ms", Floor: harness.Positive(small.bare), FloorName: client, Budget: harness.AtMost(0.5)},
			{Name: rowCPULarge, Value: large.perMark(), Unit: "ms", Floor: harness.Positive(large.bare), FloorName: client, Budget: harness.AtMost(0.5)},
			{Name: rowMemory, Value: small.memory(), Unit: "MiB", Budget: harness.AtMost(60)},
			{Name: rowMemoryLarge, Value: large.memory(), Unit: "MiB", Budget: harness.AtMost(200)},
			{Name: rowPeakLarge, Value: large.peak(), Unit: "MiB"},
			{
				Name: rowMemoryPerPod, Value: perPod(middle, large), Unit: "KiB", Floor: harness.Positive(perPod(small, middle)),
				FloorName: "from 3,000 to 10,000 pods", Budget: harness.RatioAtMost(1.2),
			},
			{Name: rowStart, Value: large.atStart(), Unit: "ms", Floor: harness.Positive(small.atStart()), FloorName: "3,000 pods"},
			{Name: rowStatusWrites, Value: large.statusRate(), Budget: harness.AtMost(1)},
		},
		Notes:  []string{fmt.Sprintf("Stages with %d nodes, %d pods and %d markers: %s.", large.nodes, large.pods, large.markers, strings.Join(stages, "; "))},
		Charts: []harness.Chart{chart},
	}
}
