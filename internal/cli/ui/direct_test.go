// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestMain(m *testing.M) {
	// The default handlers wait until the time of the last error, which is that of another bubble of synctest.
	utilruntime.ErrorHandlers = nil
	m.Run()
}

// world is a cluster with two nodes. Each namespace has a marker and one pod on each node.
type world struct {
	client.WithWatch
	direct *direct
	// fail returns the error of a list or watch of a kind in a namespace, or nil.
	mu   sync.Mutex
	fail func(verb, kind, namespace string) error
	// watches are those of pods.
	watches []watch.Interface
}

func report(node string, pod *corev1.Pod, state v1alpha1.ProbeState) *seamarkv1alpha1.ProbeReport {
	return &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: node + ".0"}, NodeName: node, Pods: []seamarkv1alpha1.PodReport{{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{{Name: "m#p", State: state}},
	}}}
}

func testPod(namespace, name, node string) *builders.PodBuilder {
	return builders.Pod(namespace, name).UID(namespace+name).Label("app", "game").Node(node)
}

func marker(namespace string) *builders.MarkerBuilder {
	return builders.Marker(namespace, "m").Selector("app", "game").Probe(builders.Probe("p").Condition("game.io/p"))
}

func newWorld(t *testing.T) *world {
	t.Helper()
	objects := []client.Object{builders.Pod("games", "unselected").Label("app", "other").Node("n1").Build()}
	for _, namespace := range []string{"games", "shop"} {
		objects = append(objects, marker(namespace).Build(), testPod(namespace, "a", "n1").Build(), testPod(namespace, "b", "n2").Build())
	}
	w := &world{fail: func(string, string, string) error { return nil }}
	w.WithWatch = fakeapi.Client(t, objects...).WithInterceptorFuncs(interceptor.Funcs{List: w.list, Watch: w.watch}).Build()
	w.direct = &direct{connection: cluster.Connection{Client: w}, now: time.Now,
		visible: &visible{reader: w, chosen: []string{"games", "shop"}, now: time.Now},
	}
	return w
}

// failure returns the error of a request, and its options without the selector of pods that have not ended, which a fake client
// does not know.
func (w *world) failure(verb string, list client.ObjectList, options []client.ListOption) (*client.ListOptions, error) {
	o := (&client.ListOptions{}).ApplyOptions(options)
	o.FieldSelector = nil
	kind := strings.TrimPrefix(fmt.Sprintf("%T", list), "*")
	if partial, ok := list.(*metav1.PartialObjectMetadataList); ok {
		kind = partial.Kind
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return o, w.fail(verb, strings.TrimSuffix(kind[strings.LastIndex(kind, ".")+1:], "List"), o.Namespace)
}

func (w *world) list(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	o, err := w.failure("list", list, options)
	if err != nil {
		return err
	}
	return c.List(ctx, list, o)
}

func (w *world) watch(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	o, err := w.failure("watch", list, options)
	if err != nil {
		return nil, err
	}
	events, err := c.Watch(ctx, list, o)
	if _, isPods := list.(*corev1.PodList); isPods {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.watches = append(w.watches, events)
	}
	return events, err
}

func (w *world) setFailure(fail func(verb, kind, namespace string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = fail
}

// set creates or replaces objects.
func (w *world) set(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		current, _ := object.DeepCopyObject().(client.Object)
		object.SetResourceVersion("")
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), current); apierrors.IsNotFound(err) {
			expect.NoError(t, w.Create(t.Context(), object))
			continue
		}
		object.SetResourceVersion(current.GetResourceVersion())
		expect.NoError(t, w.Update(t.Context(), object))
	}
}

func (w *world) remove(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		expect.NoError(t, w.Delete(t.Context(), object))
	}
}

// text describes a change: the pods with states, those that are gone, the markers and the sets.
func text(change *web.Change) []string {
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
		parts = append(parts, "all")
	}
	slices.Sort(parts)
	return parts
}

// open returns what waits for the next change of the scope that is not empty.
func (w *world) open(t *testing.T, scope web.Scope) func() []string {
	t.Helper()
	changes, err := w.direct.Open(t.Context(), scope)
	expect.NoError(t, err)
	next, stop := iter.Pull2(changes)
	t.Cleanup(stop)
	return func() []string {
		for {
			synctest.Wait()
			change, err, _ := next()
			expect.NoError(t, err)
			if parts := text(&change); len(parts) > 0 {
				return parts
			}
		}
	}
}

func sorted(list string) []string {
	parts := strings.Split(list, ", ")
	slices.Sort(parts)
	return parts
}

func TestOpenScope(t *testing.T) {
	const shop = "all, shop/a None, shop/b None, marker shop"
	all, every := web.Scope{Full: true}, "all, games/a None, games/b None, shop/a None, shop/b None, marker games, marker shop"
	for name, test := range map[string]struct {
		scope web.Scope
		// first is the state before the action.
		first string
		act   func(t *testing.T, w *world)
		want  string
	}{
		"state reported": {
			all, every, func(t *testing.T, w *world) { w.set(t, report("n1", testPod("games", "a", "n1").Build(), "Failed")) },
			"games/a Failed, shop/a None, -games/unselected",
		},
		"plan changed": {
			web.Scope{Namespace: "shop", Full: true}, shop,
			func(t *testing.T, w *world) {
				w.set(t, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n2"}})
			}, "shop/b None",
		},
		"pod deleted": {
			web.Scope{Namespace: "shop"}, shop, func(t *testing.T, w *world) { w.remove(t, testPod("shop", "a", "n1").Build()) }, "-shop/a",
		},
		"pod of another namespace": {
			web.Scope{Namespace: "shop"}, shop,
			func(t *testing.T, w *world) {
				w.remove(t, testPod("games", "a", "n1").Build(), testPod("shop", "b", "n2").Build())
			}, "-shop/b",
		},
		"pods of two namespaces": {
			all, every, func(t *testing.T, w *world) {
				w.remove(t, testPod("games", "a", "n1").Build(), testPod("shop", "b", "n2").Build())
			},
			"-games/a, -shop/b",
		},
		"pod no longer selected": {
			web.Scope{Namespace: "shop"}, shop, func(t *testing.T, w *world) { w.set(t, testPod("shop", "a", "n1").Label("app", "x").Build()) }, "-shop/a",
		},
		"marker selects nothing": {
			all, every, func(t *testing.T, w *world) { w.set(t, marker("shop").Selector("app", "none").Build()) },
			"-shop/a, -shop/b, marker games, marker shop",
		},
		"set changed": {
			web.Scope{Namespace: "shop"}, shop,
			func(t *testing.T, w *world) {
				w.set(t, &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "web", Generation: 2}})
				w.set(t, &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 2}})
				w.set(t, &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Generation: 2}})
			}, "set CloneSet shop/web NotObserved, set StatefulSet shop/db NotObserved",
		},
		"reports are not read": {
			web.Scope{Namespace: "shop"}, shop,
			func(t *testing.T, w *world) {
				w.set(t, report("n1", testPod("shop", "a", "n1").Build(), "Failed"), testPod("shop", "a", "n1").Label("v", "2").Build())
			}, "shop/a None",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				next := w.open(t, test.scope)
				expect.Equal(t, "first state", sorted(test.first), next())
				test.act(t, w)
				expect.Equal(t, "change", sorted(test.want), next())
			})
		})
	}
}

func guardOf(namespace string) *policyv1.PodDisruptionBudget {
	guard := builders.Guard(namespace, "busy", false, "game")
	guard.Spec.Selector.MatchExpressions[0].Key = "app"
	return guard
}

// TestGuards follows a guard, whose status does not matter.
func TestGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		next := w.open(t, web.Scope{Namespace: "shop"})
		expect.Equal(t, "first state", sorted("all, shop/a None, shop/b None, marker shop"), next())
		guard := guardOf("shop")
		w.set(t, guard)
		expect.Equal(t, "guarded", sorted("shop/a None guarded by busy, shop/b None guarded by busy, marker shop"), next())
		guard.Status.DisruptionsAllowed = 1
		w.set(t, guard, builders.Guard("games", "busy", false, "game"))
		w.remove(t, testPod("shop", "a", "n1").Build())
		expect.Equal(t, "pod removed", sorted("-shop/a"), next())
		w.remove(t, guard)
		expect.Equal(t, "guard removed", sorted("shop/b None, marker shop"), next())
	})
}

// A watch that the API server refuses later ends the scope.
func TestScopeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.direct.full.Store(true)
		changes, err := w.direct.Open(t.Context(), web.Scope{Full: true})
		expect.NoError(t, err)
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
		w.setFailure(func(string, string, string) error { return forbidden })
		w.watches[0].Stop()
		var last error
		for _, last = range changes {
		}
		var refusal *web.Refusal
		if !errors.As(last, &refusal) || refusal.Message != forbidden.Error() || w.direct.full.Load() {
			t.Errorf("the changes end with %v, and full is %t", last, w.direct.full.Load())
		}
	})
}

func TestScopeWithoutPermission(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
	errs := map[string]error{"forbidden": forbidden, "broken": errors.New("broken"), "absent": &meta.NoKindMatchError{}}
	for name, test := range map[string]struct {
		// fail are the errors of requests, as VERB KIND, in the namespace shop or for all.
		fail map[string]string
		note string
		err  string
		// full is whether states may still come from plans and reports after the error.
		full bool
	}{
		"nothing is missing": {},
		"budgets and ProbePlans": {
			fail: map[string]string{"list PodDisruptionBudget": "forbidden", "list ProbePlan": "absent"},
		},
		"one kind of sets is not installed, and one is forbidden": {
			fail: map[string]string{"list CloneSet": "absent", "list DaemonSet": "forbidden"}, note: "no permission to list daemonsets.apps.kruise.io in namespace shop",
		},
		"sets may be listed, and not watched": {
			fail: map[string]string{"watch DaemonSet": "forbidden", "watch CloneSet": "forbidden"},
			note: "no permission to watch clonesets.apps.kruise.io in namespace shop; no permission to watch daemonsets.apps.kruise.io in namespace shop",
		},
		"budgets may be listed, and not watched": {fail: map[string]string{"watch PodDisruptionBudget": "forbidden"}},
		"pods may not be watched":                {fail: map[string]string{"watch Pod": "forbidden"}, err: "no permission to watch pods in namespace shop", full: true},
		"reports":                                {fail: map[string]string{"list ProbeReport": "forbidden"}, err: "no permission to list probereports.seamark.dev in the cluster"},
		"reports are not installed": {
			fail: map[string]string{"list ProbeReport": "absent"}, err: "resource probereports.seamark.dev is not installed in the cluster", full: true,
		},
		"an outage": {fail: map[string]string{"list CloneSet": "broken"}, err: "list clonesets.apps.kruise.io of namespace shop: broken", full: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.direct.full.Store(true)
				w.set(t, &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, guardOf("shop"))
				w.setFailure(func(verb, kind, namespace string) error {
					if namespace == "games" {
						return nil
					}
					return errs[test.fail[verb+" "+kind]]
				})
				changes, err := w.direct.Open(t.Context(), web.Scope{Full: true})
				if test.err != "" {
					if err == nil || err.Error() != test.err {
						t.Errorf("error %v, want %q", err, test.err)
					}
					expect.Equal(t, "full", test.full, w.direct.full.Load())
					return
				}
				expect.NoError(t, err)
				for change, err := range changes {
					expect.NoError(t, err)
					expect.Equal(t, "note", test.note, change.Sets.Note)
					failed := fmt.Sprint(test.fail)
					expect.Equal(t, "sets", !strings.Contains(failed, "CloneSet"), change.Sets.Total == 1)
					expect.Equal(t, "guards", !strings.Contains(failed, "Budget"), slices.Contains(text(&change), "shop/a None guarded by busy"))
					break
				}
			})
		})
	}
}
