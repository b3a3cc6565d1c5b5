// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersource_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/ui/clustersource"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// informer is an Informer whose objects a test sets.
type informer struct {
	toolscache.SharedIndexInformer
	indexer  toolscache.Indexer
	handlers []toolscache.ResourceEventHandler
}

func newInformer(t *testing.T, indexers toolscache.Indexers) *informer {
	t.Helper()
	i := &informer{indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})}
	expect.NoError(t, i.indexer.AddIndexers(indexers))
	return i
}

func (i *informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return nil, nil
}

func (i *informer) GetIndexer() toolscache.Indexer { return i.indexer }

func (i *informer) HasSyncedChecker() toolscache.DoneChecker { return filled{} }

type filled struct{}

func (filled) Name() string { return "" }

func (filled) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (i *informer) set(t *testing.T, object client.Object) {
	t.Helper()
	before, found, _ := i.indexer.Get(object)
	expect.NoError(t, i.indexer.Update(object))
	for _, handler := range i.handlers {
		if found {
			handler.OnUpdate(before, object)
		} else {
			handler.OnAdd(object, false)
		}
	}
}

func (i *informer) remove(t *testing.T, object client.Object) {
	t.Helper()
	expect.NoError(t, i.indexer.Delete(object))
	for _, handler := range i.handlers {
		// The informer has missed the deletion.
		handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: object.GetName(), Obj: object})
	}
}

// world is a cluster with two nodes. Each namespace has a marker and one pod on each node.
type world struct {
	pods, markers, nodes, plans, reports, guards, sets, canaries *informer
	source                                                       *clustersource.Source
	now                                                          func() time.Time
}

func report(node string, pod *corev1.Pod, state v1alpha1.ProbeState) *seamarkv1alpha1.ProbeReport {
	return &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: node + ".0"}, NodeName: node, Pods: []seamarkv1alpha1.PodReport{{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{{Name: "m#p", State: state}},
	}}}
}

func testPod(namespace, name, node string) *corev1.Pod {
	return builders.Pod(namespace, name).UID(namespace+name).Label("app", "game").Node(node).Build()
}

func marker(namespace string) *builders.MarkerBuilder {
	return builders.Marker(namespace, "m").Selector("app", "game").Probe(builders.Probe("p").Condition("game.io/p"))
}

func cloneSet(namespace string) *v1alpha1.CloneSet {
	return &v1alpha1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web", Generation: 2, Annotations: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: v1alpha1.CloneSetSpec{Replicas: new(int32(3)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "n"}}},
		Status: v1alpha1.CloneSetStatus{
			ObservedGeneration: 2, UpdateRevision: "web-1", Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 2, UpdatedReplicas: 1,
			UpdatedAvailableReplicas: 1,
			ExpectedUpdatedReplicas:  3,
		},
	}
}

// canarySet returns a StatefulSet that was taken back after a canary, while the update is paused.
func canarySet(namespace string) *v1beta1.StatefulSet {
	return &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
		Spec: v1beta1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
			RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2)), Paused: true},
		}},
		Status: v1beta1.StatefulSetStatus{
			Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: 2, UpdatedAvailableReplicas: 2,
			Conditions: []appsv1.StatefulSetCondition{{Type: v1alpha1.ConditionReady, Status: corev1.ConditionFalse, Reason: "Paused"}},
		},
	}
}

// TestTrimSet checks that what is removed from a set does not change its rollout.
func TestTrimSet(t *testing.T) {
	whole, trimmed := cloneSet("shop"), cloneSet("shop")
	clustersource.TrimSet(trimmed)
	before, _ := setview.Of(whole)
	after, _ := setview.Of(trimmed)
	expect.Equal(t, "progress", before.Progress, after.Progress)
	whole.Annotations, whole.ManagedFields, whole.Spec.Template = nil, nil, corev1.PodTemplateSpec{}
	expect.Equal(t, "trimmed set", whole, trimmed)
	canary := canarySet("shop")
	clustersource.TrimSet(canary)
	after, _ = setview.Of(canary)
	expect.Equal(t, "phase", rollout.Paused, after.State().Phase)
	for _, kind := range clustersource.SetKinds() {
		if _, ok := setview.Of(kind.New()); !ok {
			t.Errorf("%s has no rollout", kind.Kind)
		}
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		pods: newInformer(t, nil), markers: newInformer(t, nil), nodes: newInformer(t, nil), plans: newInformer(t, nil),
		reports: newInformer(t, gather.SliceIndexers()), guards: newInformer(t, nil), sets: newInformer(t, nil), canaries: newInformer(t, nil), now: func() time.Time { return time.Unix(10_000, 0) },
	}
	var err error
	w.source, err = clustersource.New(clustersource.Informers{
		Pods: w.pods, Markers: w.markers, Nodes: w.nodes, Plans: w.plans, Reports: w.reports, Guards: w.guards,
		Sets: map[string]clustersource.Informer{"CloneSet": w.sets, "StatefulSet": w.canaries},
	}, podview.Options{Defaults: plan.KubernetesDefaults()}, func() time.Time { return w.now() })
	expect.NoError(t, err)
	for _, namespace := range []string{"games", "shop"} {
		w.markers.set(t, marker(namespace).Build())
		w.pods.set(t, testPod(namespace, "a", "n1"))
		w.pods.set(t, testPod(namespace, "b", "n2"))
	}
	w.pods.set(t, builders.Pod("games", "unselected").Label("app", "other").Node("n1").Build())
	return w
}

// text describes a change: the pods with states, those that are gone, and the markers.
func text(change web.Change) string {
	var parts []string
	for i := range change.Pods {
		part := change.Pods[i].Key + " " + string(change.Pods[i].State)
		if guard := change.Pods[i].Guard; guard != nil {
			part += " guarded by " + guard.Name
		}
		parts = append(parts, part)
	}
	for _, key := range change.Removed {
		if !change.All && !slices.ContainsFunc(change.Pods, func(pod model.Pod) bool { return pod.Key == key }) {
			parts = append(parts, "-"+key)
		}
	}
	for i := range change.Markers {
		parts = append(parts, "marker "+change.Markers[i].Namespace)
	}
	if change.Sets != nil {
		for _, set := range change.Sets.Sets {
			parts = append(parts, fmt.Sprintf("set %s %s", set.SetID, set.Phase))
		}
	}
	if change.All {
		parts = append([]string{"all"}, parts...)
	}
	return strings.Join(parts, ", ")
}

// open returns what waits for the next change of the scope.
func open(t *testing.T, source *clustersource.Source, scope web.Scope) func() (web.Change, error) {
	t.Helper()
	changes, err := source.Open(t.Context(), scope)
	expect.NoError(t, err)
	next, stop := iter.Pull2(changes)
	t.Cleanup(stop)
	return func() (web.Change, error) {
		change, err, _ := next()
		return change, err
	}
}

// parts returns the parts of the next change in order.
func parts(t *testing.T, next func() (web.Change, error)) []string {
	t.Helper()
	change, err := next()
	expect.NoError(t, err)
	return sorted(text(change))
}

func TestNext(t *testing.T) {
	all := web.Scope{Full: true}
	for name, test := range map[string]struct {
		scope web.Scope
		// first is the state before the action.
		first string
		act   func(t *testing.T, w *world)
		want  string
	}{
		"state reported": {all, "all, games/a None, games/b None, shop/a None, shop/b None, marker games, marker shop",
			func(t *testing.T, w *world) { w.reports.set(t, report("n1", testPod("games", "a", "n1"), "Failed")) },
			"games/a Failed, shop/a None, -games/unselected"},
		"plan changed": {web.Scope{Namespace: "shop", Full: true}, "all, shop/a None, shop/b None, marker shop",
			func(t *testing.T, w *world) {
				w.plans.set(t, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n2"}})
			},
			"shop/b None"},
		"pod deleted": {web.Scope{Namespace: "shop"}, "all, shop/a None, shop/b None, marker shop",
			func(t *testing.T, w *world) { w.pods.remove(t, testPod("shop", "a", "n1")) }, "-shop/a"},
		"pod of another namespace": {web.Scope{Namespace: "shop"}, "all, shop/a None, shop/b None, marker shop",
			func(t *testing.T, w *world) {
				w.pods.remove(t, testPod("games", "a", "n1"))
				w.pods.remove(t, testPod("shop", "b", "n2"))
			}, "-shop/b"},
		"pod no longer selected": {web.Scope{Namespace: "shop"}, "all, shop/a None, shop/b None, marker shop",
			func(t *testing.T, w *world) {
				w.pods.set(t, builders.Pod("shop", "a").UID("shopa").Node("n1").Label("app", "x").Build())
			}, "-shop/a"},
		"marker selects nothing": {all, "all, games/a None, games/b None, shop/a None, shop/b None, marker games, marker shop",
			func(t *testing.T, w *world) { w.markers.set(t, marker("shop").Selector("app", "none").Build()) },
			"-shop/a, -shop/b, marker games, marker shop"},
		"set changed": {web.Scope{Namespace: "shop"}, "all, shop/a None, shop/b None, marker shop",
			func(t *testing.T, w *world) {
				w.sets.set(t, cloneSet("games"))
				w.sets.set(t, cloneSet("shop"))
				w.canaries.set(t, canarySet("shop"))
			}, "set CloneSet shop/web Progressing, set StatefulSet shop/db Paused"},
		"reports are not read": {web.Scope{Namespace: "shop"}, "all, shop/a None, shop/b None, marker shop",
			func(t *testing.T, w *world) {
				w.reports.set(t, report("n1", testPod("shop", "a", "n1"), "Failed"))
				w.pods.set(t, builders.Pod("shop", "b").UID("shopb").Label("app", "game").Node("n2").
					Condition(corev1.PodCondition{Type: "game.io/p", Status: corev1.ConditionTrue}).
					ManagedFields(v1alpha1.FieldManager, "status", owned).Build())
			}, "shop/b Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			next := open(t, w.source, test.scope)
			expect.Equal(t, "first state", sorted(test.first), parts(t, next))
			test.act(t, w)
			expect.Equal(t, "change", sorted(test.want), parts(t, next))
		})
	}
}

// TestGuards follows a guard, whose status does not matter.
func TestGuards(t *testing.T) {
	w := newWorld(t)
	next := open(t, w.source, web.Scope{Namespace: "shop"})
	expect.Equal(t, "first state", sorted("all, shop/a None, shop/b None, marker shop"), parts(t, next))
	guard := builders.Guard("shop", "busy", false, "game")
	guard.Spec.Selector.MatchExpressions[0].Key = "app"
	w.guards.set(t, guard)
	expect.Equal(t, "guarded", sorted("shop/a None guarded by busy, shop/b None guarded by busy, marker shop"), parts(t, next))
	w.guards.set(t, guard.DeepCopy())
	w.guards.set(t, builders.Guard("games", "busy", false, "game"))
	w.pods.remove(t, testPod("shop", "a", "n1"))
	expect.Equal(t, "pod removed", sorted("-shop/a"), parts(t, next))
	w.guards.remove(t, guard)
	expect.Equal(t, "guard removed", sorted("shop/b None, marker shop"), parts(t, next))
}

// owned makes the condition game.io/p a mark.
const owned = `{"f:status":{"f:conditions":{"k:{\"type\":\"game.io/p\"}":{".":{},"f:lastProbeTime":{},` +
	`"f:lastTransitionTime":{},"f:message":{},"f:status":{},"f:type":{}}}}}`

func sorted(list string) []string {
	parts := strings.Split(list, ", ")
	slices.Sort(parts)
	return parts
}

// A pod that has no plan yet is shown with a problem when the manager has had the time to write one,
// although no object changes.
func TestNextWhenTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.now = time.Now
		pod := testPod("shop", "a", "n1")
		pod.CreationTimestamp = metav1.Now()
		w.pods.set(t, pod)
		w.pods.remove(t, testPod("shop", "b", "n2"))
		w.reports.set(t, report("n1", pod, v1alpha1.ProbeFailed))
		next := open(t, w.source, web.Scope{Namespace: "shop", Full: true})
		start := time.Now()
		for _, want := range []struct {
			problem bool
			after   time.Duration
		}{{false, 0}, {true, diagnosis.Settle}} {
			change, err := next()
			if err != nil || len(change.Pods) != 1 || change.Pods[0].Problem != want.problem || time.Since(start) != want.after {
				t.Fatalf("after %s: %+v, %v, want problem %t after %s", time.Since(start), change.Pods, err, want.problem, want.after)
			}
		}
	})
}

func TestNextEnds(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	changes, err := w.source.Open(ctx, web.Scope{})
	expect.NoError(t, err)
	cause := errors.New("forbidden")
	cancel(cause)
	var last error
	for _, last = range changes {
	}
	if !errors.Is(last, cause) {
		t.Errorf("the changes end with %v, want the cause of the end", last)
	}
}

func TestTimeline(t *testing.T) {
	in := probestatus.Input{
		Options: podview.Options{Defaults: plan.KubernetesDefaults()}, Now: time.Unix(10_000, 0),
		Pods: []*corev1.Pod{testPod("games", "a", "n1")}, Markers: []*v1alpha1.PodProbeMarker{marker("games").Build()},
		NodesUnread: true, PlansUnread: true, ReportsUnread: true,
	}
	event := corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: "gamesa"}, Reason: v1alpha1.EventReasonProbeFailed, Message: "m#p: no",
		FirstTimestamp: metav1.Unix(9000, 0), LastTimestamp: metav1.Unix(9000, 0),
	}
	query := web.TimelineQuery{Pod: model.Key{Namespace: "games", Name: "a"}, Since: time.Hour}
	timeline, err := clustersource.Timeline(in, query, func() ([]corev1.Event, error) { return []corev1.Event{event}, nil })
	if err != nil || !timeline.Complete || len(timeline.Lines) != 1 || len(timeline.Lines[0].Spans) < 2 {
		t.Errorf("timeline %+v, error %v", timeline, err)
	}
	timeline, err = clustersource.Timeline(in, query, func() ([]corev1.Event, error) { return nil, errors.New("no permission") })
	if err != nil || timeline.Complete || timeline.Note != "no permission" || len(timeline.Lines[0].Spans) != 1 {
		t.Errorf("timeline without events %+v, error %v", timeline, err)
	}
	for name, pods := range map[string][]*corev1.Pod{
		"unselected": {builders.Pod("games", "unselected").Node("n1").Build()}, "none": nil,
	} {
		in.Pods = pods
		_, err := clustersource.Timeline(in, query, func() ([]corev1.Event, error) {
			t.Errorf("pod %s: its events are read", name)
			return nil, nil
		})
		var refusal *web.Refusal
		if !errors.As(err, &refusal) || refusal.Status != 404 {
			t.Errorf("pod %s: error %v, want a refusal with status 404", name, err)
		}
	}
}
