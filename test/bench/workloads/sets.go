// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// maxUnavailable is that of all rolling updates.
const maxUnavailable = "20%"

type kind struct {
	gvk schema.GroupVersionKind
	// spec has what differs from kind to kind.
	spec map[string]any
	// perNode reports whether a set has a pod on each node, and no number of replicas.
	perNode bool
}

func groupKind(group, version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

// statefulSpec is the same for both StatefulSets.
func statefulSpec() map[string]any {
	return map[string]any{
		"serviceName": "none", "podManagementPolicy": "Parallel",
		"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": maxUnavailable}},
	}
}

func cloneSet() kind {
	return kind{gvk: groupKind("apps.kruise.io", "v1alpha1", "CloneSet"), spec: map[string]any{
		"updateStrategy": map[string]any{"type": "ReCreate", "maxUnavailable": maxUnavailable},
	}}
}

func replicaSet() kind { return kind{gvk: groupKind("apps", "v1", "ReplicaSet")} }

func deployment() kind {
	return kind{gvk: groupKind("apps", "v1", "Deployment"), spec: map[string]any{"strategy": map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": maxUnavailable, "maxSurge": int64(0)},
	}}}
}

func advancedStatefulSet() kind {
	return kind{gvk: groupKind("apps.kruise.io", "v1beta1", "StatefulSet"), spec: statefulSpec()}
}

func builtinStatefulSet() kind {
	return kind{gvk: groupKind("apps", "v1", "StatefulSet"), spec: statefulSpec()}
}

func daemonSpec() map[string]any {
	return map[string]any{"updateStrategy": map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": daemonBudget},
	}}
}

func advancedDaemonSet() kind {
	return kind{gvk: groupKind("apps.kruise.io", "v1alpha1", "DaemonSet"), spec: daemonSpec(), perNode: true}
}

func builtinDaemonSet() kind {
	return kind{gvk: groupKind("apps", "v1", "DaemonSet"), spec: daemonSpec(), perNode: true}
}

func setName(i int) string { return fmt.Sprintf("set-%d", i) }

// object returns an empty set of the kind.
func (k kind) object() *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(k.gvk)
	return out
}

// create creates the set with an index.
func (k kind) create(ctx context.Context, c client.Client, i, replicas int) error {
	pod := fixture.Pod("", "node", "", "")
	if k.perNode {
		pod.Spec.NodeName = ""
	}
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	labels := map[string]string{"set": setName(i)}
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(
		&corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec})
	if err != nil {
		return fmt.Errorf("convert template: %w", err)
	}
	spec := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"set": setName(i)}}, "template": template}
	if !k.perNode {
		spec["replicas"] = int64(replicas)
	}
	maps.Copy(spec, runtime.DeepCopyJSON(k.spec))
	out := k.object()
	out.Object["spec"] = spec
	out.SetNamespace(fixture.Namespace)
	out.SetName(setName(i))
	out.SetLabels(labels)
	if err := c.Create(ctx, out); err != nil {
		return fmt.Errorf("create %s %s: %w", k.gvk.Kind, setName(i), err)
	}
	return nil
}

// patch patches a set and returns its generation.
func (k kind) patch(ctx context.Context, c client.Client, i int, patchType types.PatchType, body string) (int64, error) {
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: setName(i)}}
	target.SetGroupVersionKind(k.gvk)
	if err := c.Patch(ctx, target, client.RawPatch(patchType, []byte(body))); err != nil {
		return 0, fmt.Errorf("patch %s %s: %w", k.gvk.Kind, setName(i), err)
	}
	return target.Generation, nil
}

// complete returns what the status of a set of the kind shows that has the number of ready pods, and with update no
// others.
func (k kind) complete(pods int, update bool) map[string]int64 {
	all, ready, updated := "replicas", "readyReplicas", "updatedReplicas"
	if k.perNode {
		all, ready, updated = "currentNumberScheduled", "numberReady", "updatedNumberScheduled"
	}
	wanted := map[string]int64{all: int64(pods), ready: int64(pods)}
	if update {
		wanted[updated] = int64(pods)
	}
	return wanted
}

// progress follows the status of all sets of a kind.
type progress struct {
	kind kind

	mu   sync.Mutex
	sets map[string]*unstructured.Unstructured
	// written are the generations that the benchmark has written, by the name of the set.
	written map[string]int64
	changed chan struct{}
}

// follow watches the sets until the measure ends.
func (k kind) follow(b *harness.Bench, s *harness.Server) *progress {
	b.Helper()
	p := &progress{kind: k, sets: map[string]*unstructured.Unstructured{}, written: map[string]int64{}, changed: make(chan struct{}, 1)}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	fixture.Follow(b, s, list, p.see, client.InNamespace(fixture.Namespace))
	return p
}

// wrote records the generation that a write of a set has returned. The set is complete with its status
// only.
func (p *progress) wrote(i int, generation int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written[setName(i)] = generation
}

func (p *progress) see(event watch.Event) {
	set, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	p.mu.Lock()
	if p.sets[set.GetName()] = set; event.Type == watch.Deleted {
		delete(p.sets, set.GetName())
		delete(p.written, set.GetName())
	}
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// stageTimeout is how long a stage may take.
const stageTimeout = 4 * time.Minute

// until waits until the status of n sets shows the number of replicas, all ready, and with update all
// updated.
func (p *progress) until(ctx context.Context, n, replicas int, update bool, failure func() error) error {
	ctx, cancel := context.WithTimeout(ctx, stageTimeout)
	defer cancel()
	for {
		missing := p.missing(n, replicas, update)
		if missing == "" {
			return nil
		}
		if err := failure(); err != nil {
			return err
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for sets: %s: %w", missing, ctx.Err())
		}
	}
}

// missing returns what the first set that is not complete lacks, empty if all n are complete.
func (p *progress) missing(n, replicas int, update bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sets) != n {
		return fmt.Sprintf("%d of %d sets exist", len(p.sets), n)
	}
	for _, set := range p.sets {
		number := func(name string) int64 {
			value, _, _ := unstructured.NestedInt64(set.Object, "status", name)
			return value
		}
		generation := max(set.GetGeneration(), p.written[set.GetName()])
		if observed := number("observedGeneration"); observed < generation {
			return fmt.Sprintf("%s has the generation %d, and its status is of %d", set.GetName(), generation, observed)
		}
		for name, value := range p.kind.complete(replicas, update) {
			if number(name) != value {
				return fmt.Sprintf("%s has %s %d, want %d", set.GetName(), name, number(name), value)
			}
		}
	}
	return ""
}
