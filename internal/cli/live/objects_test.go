// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// event is a change of an object that a watch delivers.
type event struct {
	object  client.Object
	deleted bool
}

// queue is the watch of one resource: it delivers events in order, with its own delay.
type queue struct {
	store   cache.ReflectorStore
	current map[types.NamespacedName]client.Object
	pending []event
}

func (q *queue) change(object client.Object, deleted bool) {
	if key := client.ObjectKeyFromObject(object); deleted {
		delete(q.current, key)
	} else {
		q.current[key] = object
	}
	q.pending = append(q.pending, event{object, deleted})
}

// deliver delivers the next event, at times twice.
func (q *queue) deliver(t *testing.T, random *rand.Rand) {
	t.Helper()
	if len(q.pending) == 0 {
		return
	}
	for range 1 + random.IntN(2) {
		deliver := q.store.Update
		if q.pending[0].deleted {
			deliver = q.store.Delete
		}
		expect.NoError(t, deliver(q.pending[0].object))
	}
	q.pending = q.pending[1:]
}

// relist drops the pending events and delivers a list.
func (q *queue) relist(t *testing.T) {
	t.Helper()
	var all []any
	for _, object := range q.current {
		all = append(all, object)
	}
	expect.NoError(t, q.store.Replace(all, ""))
	q.pending = nil
}

// feeder changes a small cluster at random and delivers the events.
type feeder struct {
	random                                       *rand.Rand
	version                                      int
	pods, markers, nodes, plans, reports, guards *queue
}

func newFeeder(seed uint64, o *objects) *feeder {
	to := func(store cache.ReflectorStore) *queue {
		return &queue{store: store, current: map[types.NamespacedName]client.Object{}}
	}
	return &feeder{
		random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a test repeats with the same seed
		pods:   to(o.pods), markers: to(o.markers), nodes: to(o.nodes), plans: to(o.plans), reports: to(o.reports), guards: to(o.guards),
	}
}

func (f *feeder) queues() []*queue {
	return []*queue{f.pods, f.markers, f.nodes, f.plans, f.reports, f.guards}
}

func (f *feeder) pick(words ...string) string { return words[f.random.IntN(len(words))] }

// step changes or deletes one object.
func (f *feeder) step() {
	f.version++
	var object client.Object
	var in *queue
	namespace, node := f.pick("games", "shop"), f.pick("n1", "n2")
	switch f.random.IntN(9) {
	case 0:
		in, object = f.nodes, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: node}}
		if f.random.IntN(2) == 0 {
			object.SetLabels(map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet"})
		}
	case 1:
		marker := builders.Marker(namespace, f.pick("game", "other")).
			Probe(builders.Probe("idle").Condition("game.io/idle").Container(f.pick("main", "none"))).Build()
		if f.random.IntN(4) == 0 {
			marker.Spec.Selector = nil
		}
		in, object = f.markers, marker
	case 2:
		in, object = f.plans, &v1alpha1.NodePodProbe{
			ObjectMeta: metav1.ObjectMeta{Name: node, Generation: int64(f.version)}, Spec: f.planOf(node),
			Status: v1alpha1.NodePodProbeStatus{ObservedGeneration: int64(f.version - f.random.IntN(2)), ProbeReports: true},
		}
	case 3:
		guard := builders.Guard(namespace, f.pick("busy", "strict"), false, f.pick("game", "web"))
		guard.Generation, guard.Spec.Selector.MatchExpressions[0].Key = int64(f.version), "app"
		in, object = f.guards, guard
	case 4, 5:
		in, object = f.reports, f.reportOf(node)
	default:
		pod := builders.Pod(namespace, f.pick("game-0", "game-1", "game-2")).Label("app", f.pick("game", "game", "web")).
			UID(f.pick("uid-a", "uid-b")).Node(f.pick("", "n1", "n2")).Build()
		in, object = f.pods, pod
	}
	object.SetResourceVersion(strconv.Itoa(f.version))
	in.change(object, f.random.IntN(5) == 0)
}

func (f *feeder) planOf(node string) v1alpha1.NodePodProbeSpec {
	var pods []*corev1.Pod
	for _, object := range f.pods.current {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	var compiled []*plan.Marker
	for _, object := range f.markers.current {
		if marker, ok := object.(*v1alpha1.PodProbeMarker); ok {
			if c, err := plan.Compile(marker); err == nil {
				compiled = append(compiled, c)
			}
		}
	}
	return plan.Node(pods, plan.Sorted(compiled), plan.KubernetesDefaults())
}

func (f *feeder) reportOf(node string) client.Object {
	report := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: node + ".0"}, NodeName: node}
	for _, object := range f.pods.current {
		report.Pods = append(report.Pods, seamarkv1alpha1.PodReport{
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()),
			Probes: []v1alpha1.ContainerProbeState{{
				Name: "game#idle", State: v1alpha1.ProbeState(f.pick("Succeeded", "Failed")),
				Message: strconv.Itoa(f.random.IntN(3)), LastTransitionTime: metav1.Unix(int64(f.version), 0),
			}},
		})
	}
	return report
}

// TestFeed delivers the events of a random history late, in another order than that of the
// resources, twice, or not at all before a list. The rows at the end are those of the cluster, and
// the changes lead to them.
func TestFeed(t *testing.T) {
	for seed := range uint64(60) {
		for _, query := range []cluster.Query{{}, {Namespace: "games", Names: []string{"game-0", "game-2"}}} {
			t.Run(fmt.Sprintf("%d%s", seed, query.Namespace), func(t *testing.T) {
				w := &Watch{objects: newObjects(query), rows: table{}}
				f := newFeeder(seed, w.objects)
				seen := map[string]probestatus.Row{}
				for range 200 {
					f.step()
					for _, q := range f.queues() {
						switch f.random.IntN(20) {
						case 0:
							q.relist(t)
						case 1, 2, 3, 4, 5, 6, 7, 8:
							q.deliver(t, f.random)
						}
					}
					if f.random.IntN(4) == 0 {
						observe(t, w, seen)
					}
				}
				for _, q := range f.queues() {
					for f.random.IntN(2) == 0 && len(q.pending) > 0 {
						q.deliver(t, f.random)
					}
					q.relist(t)
				}
				observe(t, w, seen)
				want := probestatus.List(w.Snapshot().Input).Rows
				expect.Equal(t, "rows", want, w.Rows(), cmpopts.EquateEmpty())
				expect.Equal(t, "rows of the changes", keyed(want), seen)
				checkObjects(t, f, w.Snapshot(), query)
			})
		}
	}
}

// observe applies changes to the rows that a user has seen.
func observe(t *testing.T, w *Watch, seen map[string]probestatus.Row) {
	t.Helper()
	changes, _ := w.Update()
	for _, c := range changes {
		row := c.New
		if row == nil {
			row = c.Old
		}
		old, known := seen[keyOf(row)]
		if known != (c.Old != nil) || known && !cmp.Equal(old, *c.Old) {
			t.Errorf("change from %+v, want from %+v", c.Old, old)
		}
		if c.New == nil {
			delete(seen, keyOf(row))
			continue
		}
		seen[keyOf(row)] = *row
	}
}

// checkObjects checks that a relist has left what the query selects.
func checkObjects(t *testing.T, f *feeder, snapshot *cluster.Snapshot, query cluster.Query) {
	t.Helper()
	var want, got []string
	for key := range f.pods.current {
		if len(query.Names) == 0 || slices.Contains(query.Names, key.Name) {
			want = append(want, key.String())
		}
	}
	for _, pod := range snapshot.Pods {
		got = append(got, client.ObjectKeyFromObject(pod).String())
	}
	expect.Equal(t, "pods", want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b }), cmpopts.EquateEmpty())
	expect.Equal(t, "markers", len(f.markers.current), len(snapshot.Markers))
}

func keyed(rows []probestatus.Row) map[string]probestatus.Row {
	all := map[string]probestatus.Row{}
	for i := range rows {
		all[keyOf(&rows[i])] = rows[i]
	}
	return all
}

func keyOf(row *probestatus.Row) string {
	return row.Namespace + "/" + row.Pod + "/" + row.Marker + "/" + row.Probe + "/" + row.Container
}

// A problem that depends on the time is a change, although no object changes.
func TestUpdateWhenTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watch{objects: newObjects(cluster.Query{}), rows: table{}}
		pod := builders.Pod("games", "game-0").Label("app", "game").Node("n1").Build()
		pod.CreationTimestamp = metav1.Now()
		expect.NoError(t, w.pods.Add(pod))
		expect.NoError(t, w.markers.Add(builders.Marker("games", "game").Probe(builders.Probe("idle")).Build()))
		<-w.Changed()
		if changes, _ := w.Update(); len(changes) != 1 || changes[0].New.Problem != nil {
			t.Fatalf("first changes: %+v, want one row without a problem", changes)
		}
		start := time.Now()
		<-w.Changed()
		if changes, _ := w.Update(); len(changes) != 1 || changes[0].New.Problem == nil || time.Since(start) != diagnosis.Settle {
			t.Errorf("changes after %s: %+v, want one row with a problem after %s", time.Since(start), changes, diagnosis.Settle)
		}
	})
}

// A change of a pod needs only the markers and guards of its namespace.
func TestTakeOfOnePod(t *testing.T) {
	w, pod := NewWatch(cluster.Query{}), builders.Pod("games", "game-0").Build()
	for _, namespace := range []string{"games", "shop"} {
		marker := builders.Marker(namespace, "game").Build()
		marker.Spec.Selector = nil
		expect.NoError(t, w.markers.Add(marker))
		expect.NoError(t, w.guards.Add(builders.Guard(namespace, "busy", false, "game")))
	}
	w.Take()
	expect.NoError(t, w.pods.Add(pod))
	stale, current := w.Take()
	expect.Equal(t, "markers, guards, and markers without effect", []int{1, 1, 2},
		[]int{len(stale.Snapshot.Markers), len(stale.Snapshot.Budgets), len(current.Invalid)})
}

// Plans and reports keep only the pods of the namespace.
func TestOtherNamespacesAreDropped(t *testing.T) {
	o := newObjects(cluster.Query{Namespace: "games"})
	npp := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec:       v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Namespace: "games", Name: "a"}, {Namespace: "shop", Name: "b"}}},
		Status:     v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{Namespace: "shop", Name: "b"}}},
	}
	report := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: "n1.0"}, NodeName: "n1",
		Pods: []seamarkv1alpha1.PodReport{{Namespace: "shop", Name: "b"}, {Namespace: "games", Name: "a"}},
	}
	expect.NoError(t, o.plans.Add(npp))
	expect.NoError(t, o.reports.Add(report))
	stored := o.plans.Items[types.NamespacedName{Name: "n1"}]
	if len(stored.Spec.PodProbes) != 1 || stored.Spec.PodProbes[0].Name != "a" || len(stored.Status.PodProbeStatuses) != 0 {
		t.Errorf("stored plan: %+v", stored)
	}
	if pods := o.reports.Items[types.NamespacedName{Name: "n1.0"}].Pods; len(pods) != 1 || pods[0].Name != "a" {
		t.Errorf("stored report: %+v", pods)
	}
}
