// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads measures seamark-workloads against Kubernetes' own controllers of workloads, with
// the same API server and the same simulated kubelets.
package workloads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// Measures returns the measures of this package.
func Measures() []harness.Measure {
	return []harness.Measure{
		compared("workloads/cloneset", cloneSet(), replicaSet(), deployment(), "ReplicaSet", "Deployment"),
		compared("workloads/statefulset", advancedStatefulSet(), builtinStatefulSet(), builtinStatefulSet(), "StatefulSet", "StatefulSet"),
		{
			Name: "workloads/start", Run: measureStart,
			Rows: []string{rowStartWrites, rowStartReconciles, rowStartTime, rowStartCPU, rowStartMemory, rowStartTotal},
		},
		{
			Name: "workloads/sidecarsets", Run: measureSidecarSets,
			Rows: []string{
				rowUnselected, rowUnselectedRequests, rowInjectedMedian, rowInjectedTail, rowInjectorCPU, rowEntered,
				rowInjectorMemory, rowSidecarWrites, rowSidecarUpdate, rowSidecarIdle, rowInjectorMemoryMany,
			},
		},
		{
			Name: "workloads/cronjobs", Run: measureCronJobs,
			Rows: []string{rowDueAll, rowDueMedian, rowCronWrites, rowCronMemory, rowCronRestart},
		},
		{
			Name: "workloads/imagepulls", Run: measureImagePulls,
			Rows: []string{rowPullWrites, rowPullTime, rowPullMost, rowPullPresent, rowPullIdle},
		},
		{
			Name: "workloads/broadcastjobs", Run: measureBroadcastJobs,
			Rows: []string{rowBroadcastTime, rowBroadcastWrites, rowBroadcastServer, rowBroadcastEnd, rowBroadcastSteps, rowBroadcastMost, rowBroadcastIdle},
		},
		{Name: "workloads/foreign", Run: measureForeign, Rows: []string{rowForeignStatus, rowForeignCreate}},
		{Name: "workloads/guards", Run: measureGuards, Rows: guardRows()},
		{Name: "workloads/types", Run: measureTypes, Rows: []string{rowTypesMemory, rowTypesStart, rowTypesCreate}},
		{Name: "workloads/daemonsets", Run: measureDaemonSets, Rows: daemonRows()},
	}
}

// syncs is the number of sets that the peer handles at once, as many as Seamark.
const syncs = "32"

// gates let the built-in StatefulSet update more than one pod at a time.
const gates = "MaxUnavailableStatefulSet=true"

func compared(name string, ours, peer, rolled kind, peerName, rolledName string) harness.Measure {
	sides := []side{
		{name: "kube-controller-manager", scaled: peer, rolled: rolled, start: func(s *harness.Server) *harness.Program {
			return s.ControllerManager("replicaset-controller,deployment-controller,statefulset-controller",
				"--concurrent-replicaset-syncs="+syncs, "--concurrent-deployment-syncs="+syncs, "--concurrent-statefulset-syncs="+syncs,
				"--feature-gates="+gates)
		}},
		{name: "seamark-workloads", scaled: ours, rolled: ours, start: (*harness.Server).Workloads},
	}
	peers := [stages]string{peerName, peerName, rolledName}
	m := harness.Measure{Name: name, Run: func(b *harness.Bench) harness.Output { return compare(b, sides, peers) }}
	for _, shape := range shapeNames() {
		for stage := range stages {
			for _, r := range results(title(stage, shape), peers[stage], cost{}, cost{}, nil) {
				m.Rows = append(m.Rows, r.Name)
			}
		}
	}
	return m
}

// shape is a number of sets and of pods in each.
type shape struct{ sets, pods int }

// shapes returns the shapes of a run. Their number and order are constant.
func shapes(b *harness.Bench) []shape {
	return harness.Pick(b, []shape{{1, 3000}, {300, 10}}, []shape{{1, 30}, {3, 10}})
}

func shapeNames() []string { return []string{"one set", "300 sets"} }

// rounds is how often each side plays each shape. It is odd, so that the median is one of the rounds.
// With many sets, only the first round has the last stage, which takes longer than the others together.
func rounds(b *harness.Bench) int { return harness.Pick(b, 3, 1) }

// compare plays all stages of both sides in rounds, and compares the medians. The side that is first
// changes with each stage. Both sides have an API server of their own at the same time and are measured in
// turn, because the machine becomes slower and faster within minutes; the other one is idle. The shapes
// use the same servers.
func compare(b *harness.Bench, sides []side, peers [stages]string) (out harness.Output) {
	var stations []*station
	for _, d := range sides {
		stations = append(stations, d.open(b))
	}
	for i, size := range shapes(b) {
		played := play(b, stations, size)
		for stage := range stages {
			theirs, ours := median(played[0][stage]), median(played[1][stage])
			out.Results = append(out.Results, results(title(stage, shapeNames()[i]), peers[stage], ours, theirs, nil)...)
			out.Notes = append(out.Notes, fmt.Sprintf("Writes to %s: Seamark %s; %s %s.",
				title(stage, shapeNames()[i]), list(ours.writes), peers[stage], list(theirs.writes)))
		}
	}
	return out
}

// play returns the costs of all rounds of a shape, by side and stage.
func play(b *harness.Bench, stations []*station, size shape) (played [2][stages][]cost) {
	b.Helper()
	for round := range rounds(b) {
		last := stageRoll
		if round > 0 && size.sets > 1 {
			last = stageScale
		}
		for stage := range last + 1 {
			for n := range stations {
				j := (n + stage + round) % len(stations)
				played[j][stage] = append(played[j][stage], stations[j].measure(stage, size))
			}
		}
		for _, st := range stations {
			st.reset(st.rolled, st.scaled)
		}
	}
	return played
}

// title returns what a stage does.
func title(stage int, shape string) string {
	return [...]string{
		"create 3,000 pods in " + shape,
		"scale " + shape + " from 3,000 to 2,000 pods and back",
		"roll 3,000 pods in " + shape,
	}[stage]
}

// results compares a stage with the peer's. The budget of the controller's processor time may be nil.
func results(title, peer string, ours, theirs cost, processors *harness.Budget) []harness.Result {
	row := func(name, unit string, ours, theirs float64, budget *harness.Budget) harness.Result {
		return harness.Result{
			Name: title + ": " + name, Value: ours, Unit: unit, Floor: theirs, FloorName: peer, Budget: budget,
		}
	}
	const processor = "'s processor time"
	return []harness.Result{
		row("time", "s", ours.took.Seconds(), theirs.took.Seconds(), harness.RatioAtMost(1)),
		row("writes", "", float64(ours.total()), float64(theirs.total()), harness.RatioAtMost(1)),
		row("API server"+processor, "s", ours.apiServer.Seconds(), harness.Positive(theirs.apiServer.Seconds()), nil),
		row("controller"+processor, "s", ours.controller.Seconds(), harness.Positive(theirs.controller.Seconds()), processors),
	}
}

// list returns the writes of a stage by resource.
func list(writes map[string]int) string {
	var parts []string
	for resource, n := range writes {
		parts = append(parts, fmt.Sprintf("`%s` %d", resource, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// The rows of the measure of the start.
const (
	rowStartWrites     = "writes of a start with 1,000 sets of 10 pods and nothing to change"
	rowStartReconciles = "reconciles per set"
	rowStartTime       = "time from the start of the process until every set is reconciled"
	rowStartCPU        = "processor time of the start"
	rowStartMemory     = "memory (RSS) per pod"
	rowStartTotal      = "memory (RSS), 1,000 sets of 10 pods"
)

// reconciles is the program's counter of reconciles.
const reconciles = "controller_runtime_reconcile_total"

// measureStart creates sets of both kinds, waits until nothing changes any more, and restarts the
// program.
func measureStart(b *harness.Bench) harness.Output {
	size := harness.Pick(b, shape{500, 10}, shape{3, 3})
	kinds := []kind{cloneSet(), advancedStatefulSet()}
	st := newStation(b, side{name: "seamark-workloads", start: (*harness.Server).Workloads}, kinds...)
	st.create(kinds[0], shape{1, 0})
	st.reset(kinds[0])
	empty := st.controller.Usage()
	for _, k := range kinds {
		st.create(k, size)
	}
	b.Idle(2 * st.settled())
	st.controller.Stop()
	sets := float64(len(kinds) * size.sets)
	var took time.Duration
	writes := cost{writes: writesOf(st.server.Counted(func() {
		start := time.Now()
		st.controller.Restart()
		st.controller.Runs(reconciles, sets)
		took = time.Since(start)
		b.Idle(5 * st.settled())
	}).Requests)}
	total, err := st.controller.Total(b.Context(), reconciles)
	b.Must(err)
	usage := st.controller.Usage()
	b.Logf("writes %v, without sets %d KiB", writes.writes, empty.RSS>>10)
	return harness.Output{
		Results: []harness.Result{
			{Name: rowStartWrites, Value: float64(writes.total()), Budget: harness.AtMost(0)},
			{Name: rowStartReconciles, Value: total / sets, Budget: harness.AtMost(1)},
			{Name: rowStartTime, Value: took.Seconds(), Unit: "s"},
			{Name: rowStartCPU, Value: usage.CPU.Seconds(), Unit: "s"},
			{Name: rowStartMemory, Value: max(float64(usage.RSS)-float64(empty.RSS), 0) / 1024 / (sets * float64(size.pods)), Unit: "KiB"},
			{Name: rowStartTotal, Value: float64(usage.RSS) / harness.Mebibyte, Unit: "MiB"},
		},
		Notes: []string{
			"Half of the sets are CloneSets, half StatefulSets. Memory is measured after the restart; the memory of the program without sets is subtracted per pod.",
		},
	}
}

// The rows about the types of templates in CRDs.
const (
	rowTypesMemory = "API server's heap after a garbage collection, all CRDs installed"
	rowTypesStart  = "API server's processor time from its start until all CRDs are served"
	rowTypesCreate = "API server's processor time per creation of a CloneSet"
)

// typed is an API server whose CRDs have types of templates, or not.
type typed struct {
	server    *env.Env
	clientset kubernetes.Interface
	namespace string
	// start is the processor time of the start in seconds, heap the bytes in use, and creation the times per object in
	// microseconds, one of each round.
	start, heap float64
	creation    []float64
}

// measureTypes measures what the types of templates, containers and claims in the CRDs cost the API server. Both sides are
// measured in turn.
func measureTypes(b *harness.Bench) harness.Output {
	sides := []*typed{openTyped(b), openTyped(b, env.Types())}
	rounds := harness.Pick(b, 9, 1)
	for round := range rounds {
		for n := range sides {
			sides[(n+round)%len(sides)].play(b, round)
		}
	}
	bare, full := sides[0], sides[1]
	return harness.Output{
		Results: []harness.Result{
			{Name: rowTypesMemory, Value: full.heap / harness.Mebibyte, Unit: "MiB", Floor: bare.heap / harness.Mebibyte, FloorName: "without types"},
			{Name: rowTypesStart, Value: full.start, Unit: "s", Floor: bare.start, FloorName: "without types"},
			{
				Name: rowTypesCreate, Value: middle(full.creation), Unit: "µs", Floor: middle(bare.creation), FloorName: "without types",
				Noise: halfRange(full.creation),
			},
		},
		Notes: []string{fmt.Sprintf("The creations are medians of %d rounds of each side in turn. A CloneSet has a template with 12 variables.", rounds)},
	}
}

// openTyped starts an API server. Its heap is that after a first object.
func openTyped(b *harness.Bench, options ...env.Option) *typed {
	b.Helper()
	side := &typed{server: env.Start(b.T, options...)}
	var err error
	side.clientset, err = kubernetes.NewForConfig(side.server.Config)
	b.Must(err)
	side.namespace = side.server.Namespace(b.T)
	side.create(b, "first", 1)
	side.start = side.metric(b, "process_cpu_seconds_total")
	side.get(b, "/debug/pprof/heap", "gc", "1")
	side.heap = side.metric(b, "go_memstats_heap_alloc_bytes")
	return side
}

func (s *typed) get(b *harness.Bench, path, parameter, value string) string {
	b.Helper()
	text, err := s.clientset.Discovery().RESTClient().Get().AbsPath(path).Param(parameter, value).DoRaw(b.Context())
	b.Must(err)
	return string(text)
}

// metric returns a metric without labels.
func (s *typed) metric(b *harness.Bench, name string) float64 {
	b.Helper()
	for line := range strings.Lines(s.get(b, "/metrics", "name", name)) {
		var value float64
		if n, _ := fmt.Sscanf(line, name+" %g", &value); n == 1 {
			return value
		}
	}
	b.Fatalf("the API server has no metric %s", name)
	return 0
}

func (s *typed) create(b *harness.Bench, prefix string, n int) {
	b.Helper()
	labels := map[string]string{"app": prefix}
	container := corev1.Container{Name: "main", Image: "registry.example.com/team/main:1"}
	for i := range 12 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value"})
	}
	b.Each(n, harness.Clients, func(ctx context.Context, i int) error {
		return s.server.Client.Create(ctx, &v1alpha1.CloneSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", prefix, i), Labels: labels},
			Spec: v1alpha1.CloneSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
				},
			},
		})
	})
}

// play measures one round.
func (s *typed) play(b *harness.Bench, round int) {
	b.Helper()
	count, prefix := harness.Pick(b, 1000, 10), fmt.Sprintf("round-%d", round)
	before := s.metric(b, "process_cpu_seconds_total")
	s.create(b, prefix, count)
	s.creation = append(s.creation, 1e6*(s.metric(b, "process_cpu_seconds_total")-before)/float64(count))
	b.Must(s.server.Client.DeleteAllOf(b.Context(), &v1alpha1.CloneSet{}, client.InNamespace(s.namespace), client.MatchingLabels{"app": prefix}))
}
