// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
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
	rowMemoryHuge   = "manager's memory (RSS), 150,000 pods, extrapolated from the curve"
	rowStart        = "manager's processor time per pod at the start, 30,000 pods"
	chartMemory     = "manager-memory"

	mebibyte = 1 << 20
)

func resourcesMeasure() harness.Measure {
	return harness.Measure{
		Name:   "manager/resources",
		Rows:   []string{rowCPU, rowCPULarge, rowMemory, rowMemoryLarge, rowPeakLarge, rowMemoryPerPod, rowMemoryHuge, rowStart},
		Charts: []string{chartMemory},
		Run:    measureResources,
	}
}

const (
	// markers is the number of markers. Each selects its part of the pods.
	markers = 30
	// stateLabel is the label, and the type of the condition, that they set.
	stateLabel = "example.com/state"
)

func podList() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("PodList") }

// unmarked selects the pods without the value in the label that the markers set.
func unmarked(value string) client.ListOption {
	without, err := labels.NewRequirement(stateLabel, selection.NotEquals, []string{value})
	if err != nil {
		panic(err) // The label is a constant.
	}
	return client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*without)}
}

// stage is what the manager used in a stage.
type stage struct {
	name string
	took time.Duration
	harness.Usage
}

// resources is what the manager uses for a number of pods.
type resources struct {
	pods, nodes int
	stages      []stage
	// bare is the processor time of a client per bare apply, in milliseconds.
	bare float64
	// profiles are those of a stage in which all states change.
	profiles []harness.Profile
}

func measureResources(ctx context.Context, r *harness.Run) (harness.Output, error) {
	var all []resources
	sizes := harness.Pick(r, []int{3_000, 10_000, 30_000}, []int{60, 120, 240})
	for i, pods := range sizes {
		used, err := measureSize(ctx, r, pods, i == len(sizes)-1)
		if err != nil {
			return harness.Output{}, fmt.Errorf("%d pods: %w", pods, err)
		}
		all = append(all, used)
	}
	return resourcesOutput(all), nil
}

// measureSize runs all stages with a number of pods, 30 per node, and records profiles if they are
// wanted.
func measureSize(ctx context.Context, r *harness.Run, pods int, profiled bool) (out resources, err error) {
	out = resources{pods: pods, nodes: max(1, pods/30)}
	// Each size has its own server, which stops before the next one starts.
	inner := r.Nested()
	defer func() { err = errors.Join(err, inner.End()) }()
	c, err := newCluster(ctx, inner, out.nodes, pods, func(pod int) string { return strconv.Itoa(pod % markers) })
	if err != nil {
		return out, err
	}
	for i := range markers {
		if err := c.create(ctx, marker(fmt.Sprintf("marker-%03d", i), strconv.Itoa(i), stateLabel)); err != nil {
			return out, err
		}
	}
	a := &agents{cluster: c}
	manager, err := c.Manager(ctx)
	if err != nil {
		return out, err
	}
	idle := func(ctx context.Context) error {
		return harness.Idle(ctx, harness.Pick(r, 10*time.Second, time.Second))
	}
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"start, and all plans written", c.allPlanned},
		{"all states are reported at once, all pods marked", a.report},
		{"no changes", idle},
		{"all states change at once", a.report},
		{"no changes again", idle},
	} {
		if err := out.stage(ctx, inner, manager, s.name, s.do); err != nil {
			return out, err
		}
	}
	if profiled {
		out.profiles, err = c.Profiled(ctx, harness.Pick(r, 15*time.Second, time.Second), map[string]*harness.Program{"seamark-manager": manager}, a.report)
		if err != nil {
			return out, err
		}
	}
	if err := manager.Stop(); err != nil {
		return out, err
	}
	if manager, err = c.Manager(ctx); err != nil {
		return out, err
	}
	if err := out.stage(ctx, inner, manager, "restarted, then no changes", idle); err != nil {
		return out, err
	}
	if err := manager.Stop(); err != nil {
		return out, err
	}
	out.bare, err = c.bareApply(ctx, harness.Pick(r, 1000, 20))
	return out, err
}

// stage runs a stage and adds what the manager used.
func (u *resources) stage(ctx context.Context, r *harness.Run, p *harness.Program, name string, do func(context.Context) error) error {
	before, err := p.Usage()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s := stage{name: name, took: time.Since(began)}
	if s.Usage, err = p.Usage(); err != nil {
		return err
	}
	s.CPU -= before.CPU
	r.Log("%-50s %6.1f s  RSS %4d MiB  peak %4d MiB  CPU %6.2f s", name, s.took.Seconds(), s.RSS/mebibyte, s.Peak/mebibyte, s.CPU.Seconds())
	u.stages = append(u.stages, s)
	return nil
}

// allPlanned waits until the plans have all pods.
func (c *cluster) allPlanned(ctx context.Context) error {
	return harness.Until(ctx, "all pods are planned", time.Second, func(ctx context.Context) (bool, error) {
		pods, _, err := c.planned(ctx)
		return pods == c.pods, err
	})
}

// bareApply applies a label and a condition to pods one after the other, as the manager does, and
// returns the processor time of this client per pod in milliseconds.
func (c *cluster) bareApply(ctx context.Context, n int) (float64, error) {
	config, err := c.ManagerConfig(ctx)
	if err != nil {
		return 0, err
	}
	config.QPS = -1
	writer, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return 0, fmt.Errorf("build client: %w", err)
	}
	pods := apply.NewPods(writer)
	list := &corev1.PodList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(int64(n))); err != nil {
		return 0, fmt.Errorf("list pods: %w", err)
	}
	before, err := processorTime()
	if err != nil {
		return 0, err
	}
	for i := range list.Items {
		marks := mark.Marks{
			mark.Label(stateLabel):         {Text: "bare"},
			mark.ConditionType(stateLabel): {Condition: mark.Condition{Status: corev1.ConditionTrue, Message: "3 of 16 players are connected"}},
		}
		if _, err := pods.Marks(ctx, &list.Items[i], marks); err != nil {
			return 0, fmt.Errorf("apply marks: %w", err)
		}
	}
	after, err := processorTime()
	return (after - before).Seconds() * 1000 / float64(max(1, len(list.Items))), err
}

// processorTime returns that of this process.
func processorTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
