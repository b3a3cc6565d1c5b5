// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/recipes/disruption"
)

// lossLimit is how long a test waits until one pod has the label: longer than a node takes to become not ready, and its states stale.
const lossLimit = 2 * time.Minute

// TestNodeLoss cuts off the node of the primary, SEAMARK_RUNS times for each program that SEAMARK_DISRUPTION names and each choice of
// the marker's fields, and writes docs/disruption.md. It needs four nodes: three for the program, and one for Seamark.
func TestNodeLoss(t *testing.T) {
	measured, count := measured(t)
	for _, p := range measured {
		for _, marker := range disruption.Markers() {
			t.Run(p.recipe+"/"+marker, func(t *testing.T) {
				l := &losses{suite: newSuite(t, p.recipe), program: p, marker: marker}
				l.create()
				var all []disruption.Loss
				for run := range count {
					all = append(all, l.cut())
					l.Logf("%+v", all[run])
				}
				l.publish(func(r *disruption.Results) { r.AddLosses(p.title, marker, all) })
			})
		}
	}
}

// losses are those of the nodes of one program with one marker.
type losses struct {
	*suite
	program
	marker string

	mu sync.Mutex
	// holders are the pods with the label since the loss of a node, or nil.
	holders *disruption.Labels
}

// create creates the objects of the recipe, except the guard: each pod of the set on a node of its own, the rest on the first node.
func (l *losses) create() {
	l.Helper()
	nodes := &corev1.NodeList{}
	cluster.Must(l, l.Client.List(l.Context(), nodes))
	if len(nodes.Items) != 4 {
		l.Fatalf("the cluster has %d nodes, want 4: run `make bench-node-loss`", len(nodes.Items))
	}
	var names []string
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	slices.Sort(names)
	l.gather(names)
	l.deleteAtEnd()
	for _, object := range l.objects() {
		switch object.GetKind() {
		case "PodProbeMarker":
			l.choose(object)
		case "PodDisruptionBudget":
			continue
		case "StatefulSet":
			place(object, names[0], object.GetName() == l.name)
		}
		l.Create(object)
	}
	l.observe(l.see)
}

// gather moves the programs of Seamark, except the agents, to the first node.
func (l *losses) gather(nodes []string) {
	l.Helper()
	const others = "app.kubernetes.io/name=seamark,app.kubernetes.io/component!=agent"
	selector, err := labels.Parse(others)
	cluster.Must(l, err)
	pods := &corev1.PodList{}
	cluster.Must(l, l.Client.List(l.Context(), pods, ctrl.InNamespace(cluster.SystemNamespace), ctrl.MatchingLabelsSelector{Selector: selector}))
	if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != nodes[0] }) {
		return
	}
	l.Kubectl(append([]string{"cordon"}, nodes[1:]...)...)
	l.Cleanup(func() {
		out, err := l.TryKubectl(context.WithoutCancel(l.Context()), append([]string{"uncordon"}, nodes[1:]...)...)
		expect.NoErrorf(l, err, "%s", out)
	})
	l.Kubectl("--namespace", cluster.SystemNamespace, "delete", "pods", "--selector", others)
	l.Kubectl("--namespace", cluster.SystemNamespace, "wait", "pods", "--selector", others, "--for=condition=Ready", "--timeout=2m")
	l.Kubectl(append([]string{"uncordon"}, nodes[1:]...)...)
}

// choose removes the fields from the marker that are not measured.
func (l *losses) choose(marker *unstructured.Unstructured) {
	spec := marker.Object["spec"].(map[string]any)
	for _, probe := range list(spec, "probes") {
		if l.marker != disruption.Stale && l.marker != disruption.StaleAndExclusive {
			delete(probe, "staleAfterSeconds")
		}
		for _, policy := range list(probe, "markerPolicy") {
			if l.marker != disruption.Exclusive && l.marker != disruption.StaleAndExclusive {
				delete(policy, "exclusive")
			}
		}
	}
}

// place puts the pods of a set on the first node or, if they are spread, on one of the others each.
func place(set *unstructured.Unstructured, first string, spread bool) {
	pod := set.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	if !spread {
		pod["nodeSelector"] = map[string]any{corev1.LabelHostname: first}
		return
	}
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	other := map[string]any{"key": corev1.LabelHostname, "operator": "NotIn", "values": []any{first}}
	apart := map[string]any{"topologyKey": corev1.LabelHostname, "labelSelector": map[string]any{"matchLabels": map[string]any{"app": set.GetName()}}}
	pod["affinity"] = map[string]any{
		"nodeAffinity":    map[string]any{required: map[string]any{"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{other}}}}},
		"podAntiAffinity": map[string]any{required: []any{apart}},
	}
}

// cut cuts off the node of the primary until the label has moved, or longer than it takes, and waits until all is as before.
func (l *losses) cut() disruption.Loss {
	l.Helper()
	before := l.atRest(l.program, "v1")
	link := "seamark-" + strings.TrimPrefix(l.Pod(before.primary).Spec.NodeName, "node-")
	up := sync.OnceFunc(func() { l.link(context.WithoutCancel(l.Context()), link, "up") })
	l.Cleanup(up)
	l.follow(disruption.NewLabels(before.primary, time.Now()))
	l.link(l.Context(), link, "down")
	deadline := time.Now().Add(lossLimit)
	await.Poll{Interval: 100 * time.Millisecond, Timeout: 2 * lossLimit}.Success(l, "end of the loss", func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return await.ErrorIf(!l.holders.Moved() && time.Now().Before(deadline), "the label has not moved")
	})
	loss := l.follow(nil).Loss(l.title, l.marker, time.Now())
	up()
	l.atRest(l.program, "v1")
	return loss
}

// follow replaces the pods with the label.
func (l *losses) follow(holders *disruption.Labels) (before *disruption.Labels) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.holders = l.holders, holders
	return before
}

func (l *losses) see(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders != nil && pod.Labels["app"] == l.name {
		l.holders.See(pod.Name, has(pod, l.primary), time.Now())
	}
}

func (l *losses) link(ctx context.Context, name, state string) {
	l.Helper()
	out, err := l.Run(ctx, "ip", "link", "set", name, state)
	expect.NoErrorf(l, err, "set link %s %s: %s", name, state, out)
}
