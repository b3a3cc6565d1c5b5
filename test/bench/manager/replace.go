// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/follow"
)

// The rows of the measure of replaced pods.
const (
	rowReplaceWrites = "plan writes per replaced pod, one by one, 110 pods per node"
	rowReplaceCPU    = "API server's processor time per replaced pod, 110 pods per node"
	rowReplaceOwn    = "of this, caused by Seamark"
	chartReplace     = "replace"
)

// step is the time between two steps of a pod's life. It is longer than the inputs of a plan must
// be unchanged, so that each step could cause a write.
const step = 150 * time.Millisecond

func replaceMeasure() harness.Measure {
	return harness.Measure{
		Name: "manager/replace", Rows: []string{rowReplaceWrites, rowReplaceCPU, rowReplaceOwn},
		Charts: []string{chartReplace}, Run: measureReplace,
	}
}

// replaced is the cost of one replaced pod.
type replaced struct {
	writes, cpu float64
}

// measureReplace replaces pods one by one on a node of each size, without and with the manager.
func measureReplace(ctx context.Context, r *harness.Run) (harness.Output, error) {
	sizes, rounds := harness.Pick(r, []int{3, 30, 110}, []int{3, 6}), harness.Pick(r, 25, 2)
	bare, with := make([]replaced, len(sizes)), make([]replaced, len(sizes))
	var profiles []harness.Profile
	for i, size := range sizes {
		var err error
		bare[i], with[i], profiles, err = measureNode(ctx, r, size, rounds, i == len(sizes)-1)
		if err != nil {
			return harness.Output{}, fmt.Errorf("%d pods: %w", size, err)
		}
		r.Log("%d pods: %.2f plan writes; %.1f ms, without Seamark %.1f ms", size, with[i].writes, with[i].cpu, bare[i].cpu)
	}
	return replaceOutput(sizes, rounds, bare, with, profiles), nil
}

// measureNode replaces pods of one node, without and then with the manager, and records profiles if
// they are wanted.
func measureNode(ctx context.Context, r *harness.Run, size, rounds int, profiled bool) (bare, with replaced, profiles []harness.Profile, err error) {
	inner := r.Nested()
	defer func() { err = errors.Join(err, inner.End()) }()
	c, err := newCluster(ctx, inner, 1, size, func(int) string { return "all" })
	if err != nil {
		return bare, with, nil, err
	}
	if err := c.create(ctx, marker("state", "all", stateLabel)); err != nil {
		return bare, with, nil, err
	}
	p := &replacer{cluster: c, next: size}
	for n := range size {
		p.alive = append(p.alive, c.pod(n, nodeName(0)).Name)
	}
	if bare, err = p.measure(ctx, rounds); err != nil {
		return bare, with, nil, err
	}
	manager, err := c.Manager(ctx)
	if err != nil {
		return bare, with, nil, err
	}
	p.managed = true
	if err := errors.Join(p.planned(ctx), p.follow(ctx)); err != nil {
		return bare, with, nil, err
	}
	if with, err = p.measure(ctx, rounds); err != nil || !profiled {
		return bare, with, nil, err
	}
	profiles, err = c.Profiled(ctx, harness.Pick(r, 15*time.Second, time.Second), map[string]*harness.Program{"seamark-manager": manager}, p.replace)
	return bare, with, profiles, err
}

func replaceOutput(sizes []int, rounds int, bare, with []replaced, profiles []harness.Profile) harness.Output {
	last := len(sizes) - 1
	own := func(i int) float64 { return with[i].cpu - bare[i].cpu }
	small := fmt.Sprintf("%d pods per node", sizes[0])
	total := harness.Series{Label: "replaced pod, with Seamark"}
	alone := harness.Series{Label: "replaced pod, without Seamark", Dashed: true}
	for i, size := range sizes {
		total.Points = append(total.Points, harness.Point{X: float64(size), Y: with[i].cpu})
		alone.Points = append(alone.Points, harness.Point{X: float64(size), Y: bare[i].cpu})
	}
	return harness.Output{
		Results: []harness.Result{
			{Name: rowReplaceWrites, Value: with[last].writes, Floor: with[0].writes, FloorName: small, Budget: harness.AtMost(2)},
			{
				Name: rowReplaceCPU, Value: with[last].cpu, Unit: "ms", Floor: with[0].cpu, FloorName: small, Budget: harness.RatioAtMost(1.5),
				Note: "A plan is one object, the `NodePodProbe` of OpenKruise, and the API server decodes, validates and encodes all of it in each write. " +
					"A JSON patch of the changed pods alone saves a tenth. Plans in slices, as reports are, would be independent of the number of pods.",
			},
			// In a quick run, the difference may be 0.
			{Name: rowReplaceOwn, Value: own(last), Unit: "ms", Floor: max(own(0), 0.01), FloorName: small},
		},
		Charts: []harness.Chart{{
			Name: chartReplace, Title: "API server's processor time per replaced pod", X: "pods per node", Y: "ms",
			Series: []harness.Series{total, alone},
		}},
		Profiles: profiles,
		Notes: []string{fmt.Sprintf("Each of %d pods is deleted, ends and is removed, and its successor is created, bound, started and running: "+
			"seven requests of users, scheduler and kubelet, each %s apart. The agent's write of the plan in force is included.", rounds, step)},
	}
}

// replacer replaces the pods of one node in turn.
type replacer struct {
	*cluster
	alive []string
	next  int
	// managed is whether a manager runs. generation is that of the plan.
	managed    bool
	generation atomic.Int64
}

// follow watches the plan, as the agent does.
func (p *replacer) follow(ctx context.Context) error {
	watcher, err := client.NewWithWatch(p.Config, client.Options{Scheme: p.Client.Scheme()})
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	wait, err := follow.Objects(ctx, watcher, &v1alpha1.NodePodProbeList{}, func(event watch.Event) {
		if plan, ok := event.Object.(*v1alpha1.NodePodProbe); ok {
			p.generation.Store(plan.Generation)
		}
	}, client.MatchingFields{"metadata.name": nodeName(0)})
	if err != nil {
		cancel()
		return fmt.Errorf("follow the plan: %w", err)
	}
	p.run.OnEnd(func() error {
		cancel()
		return wait()
	})
	return nil
}

// measure returns the cost per replaced pod, without that of an idle API server.
func (p *replacer) measure(ctx context.Context, rounds int) (replaced, error) {
	if err := p.replace(ctx); err != nil {
		return replaced{}, err
	}
	idle, err := p.counted(ctx, func() error { return harness.Idle(ctx, harness.Pick(p.run, 8*time.Second, time.Second)) })
	if err != nil {
		return replaced{}, err
	}
	busy, err := p.counted(ctx, func() error {
		return harness.Each(ctx, rounds, 1, func(ctx context.Context, _ int) error { return p.replace(ctx) })
	})
	if err != nil {
		return replaced{}, err
	}
	background := idle.APIServer.Seconds() / idle.Duration().Seconds() * busy.Duration().Seconds()
	return replaced{
		writes: float64(busy.Requests.Writes("nodepodprobes", "")) / float64(rounds),
		cpu:    (busy.APIServer.Seconds() - background) / float64(rounds) * 1000,
	}, nil
}

func (p *replacer) counted(ctx context.Context, do func() error) (harness.Counters, error) {
	before, err := p.Counters(ctx)
	if err != nil {
		return before, err
	}
	if err := do(); err != nil {
		return before, err
	}
	after, err := p.Counters(ctx)
	return after.Since(before), err
}

// planned waits until the plan has all pods.
func (p *replacer) planned(ctx context.Context) error {
	return harness.Until(ctx, "all pods are planned", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		pods, _, err := p.cluster.planned(ctx)
		return pods == p.pods, err
	})
}

// replace acts as user, scheduler and kubelet for the oldest pod and its successor.
func (p *replacer) replace(ctx context.Context) error {
	old := &corev1.Pod{}
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.alive[0]}, old); err != nil {
		return fmt.Errorf("get pod: %w", err)
	}
	pod := p.pod(p.next, "")
	ended := old.Status.DeepCopy()
	for i := range ended.ContainerStatuses {
		c := &ended.ContainerStatuses[i]
		c.Ready, c.State = false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", ContainerID: c.ContainerID}}
	}
	for _, do := range []func() error{
		func() error { return p.Client.Delete(ctx, old) },
		func() error { return p.patchStatus(ctx, old, *ended) },
		func() error { return p.Client.Delete(ctx, old, client.GracePeriodSeconds(0)) },
		func() error { return p.Client.Create(ctx, pod) },
		func() error {
			binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodeName(0)}}
			return p.Client.SubResource("binding").Create(ctx, pod, binding)
		},
		func() error { return p.patchStatus(ctx, pod, starting()) },
		func() error { return p.patchStatus(ctx, pod, running(p.next)) },
	} {
		if err := do(); err != nil {
			return fmt.Errorf("replace pod %s: %w", old.Name, err)
		}
		if err := harness.Idle(ctx, step); err != nil {
			return err
		}
	}
	p.alive, p.next = append(p.alive[1:], pod.Name), p.next+1
	if !p.managed {
		return nil
	}
	return p.inForce(ctx)
}

// patchStatus writes the status as a kubelet does.
func (p *replacer) patchStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	before := pod.DeepCopy()
	pod.Status = status
	return p.Client.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)) //nolint:wrapcheck // the caller wraps it
}

// inForce writes the plan in force as the agent does, once per replaced pod.
func (p *replacer) inForce(ctx context.Context) error {
	plan := &metav1.PartialObjectMetadata{}
	plan.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("NodePodProbe"))
	plan.Name = nodeName(0)
	body := fmt.Sprintf(`{"status":{"observedGeneration":%d,"pods":%d,"probes":%[2]d,"probeReports":true}}`, p.generation.Load(), p.pods)
	if err := p.Client.Status().Patch(ctx, plan, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		return fmt.Errorf("write plan in force: %w", err)
	}
	return nil
}
