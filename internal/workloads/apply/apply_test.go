// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func testSet() apply.Set {
	return apply.Set{
		GroupVersionKind: v1alpha1.GroupVersion().WithKind("CloneSet"),
		Object:           &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid"}},
	}
}

func ownedPod(name, serial string) *corev1.Pod {
	set := testSet()
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Annotations: map[string]string{v1alpha1.PodSerialAnnotationKey: serial},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set.Object, set.GroupVersionKind)},
	}}
}

// executor returns an executor whose requests go through funcs.
func executor(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *apply.Executor {
	t.Helper()
	fake := fakeapi.Client(t, objects...).WithInterceptorFuncs(funcs).Build()
	return apply.New(apply.Options{
		Client: fake, Live: fake, Parallel: 8, Budget: time.Minute, Timeout: 10 * time.Second, Now: time.Now,
		Wrote: func(string, string, string) {}, Failed: func(string) {},
		DeletePod: func(ctx context.Context, pod types.NamespacedName, conditions metav1.Preconditions) error {
			object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
			return fake.Delete(ctx, object, client.Preconditions(conditions))
		},
	})
}

var podResource = schema.GroupResource{Resource: "pods"}

func TestCreateWithLostResponse(t *testing.T) {
	lost := true
	x := executor(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			err := c.Create(ctx, object, options...)
			if lost {
				return context.DeadlineExceeded
			}
			return err
		},
	})
	actions := &planning.Actions{Creates: []*corev1.Pod{ownedPod("set-a", "7")}}
	if outcome := x.Execute(t.Context(), testSet(), actions); len(outcome.Errs) != 1 || outcome.Succeeded() || len(outcome.Failures) != 0 {
		t.Errorf("first step: %+v, want one error", outcome)
	}
	lost = false
	outcome := x.Execute(t.Context(), testSet(), actions)
	if !outcome.Succeeded() || outcome.Writes != 1 || outcome.Pods == "" {
		t.Errorf("second step: %+v, want that the pod counts as created", outcome)
	}
}

func TestCreateOfExistingPod(t *testing.T) {
	now := metav1.Now()
	ending := ownedPod("set-a", "7")
	ending.DeletionTimestamp, ending.Finalizers = &now, []string{"example.com/hold"}
	free := ownedPod("set-a", "7")
	free.OwnerReferences = nil
	cases := map[string]struct {
		existing                *corev1.Pod
		failed, outdated, taken bool
	}{
		"same serial":    {existing: ownedPod("set-a", "7")},
		"another serial": {existing: ownedPod("set-a", "6"), outdated: true},
		"terminating":    {existing: ending, outdated: true},
		"no owner":       {existing: free, failed: true, taken: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := executor(t, interceptor.Funcs{}, tc.existing)
			outcome := x.Execute(t.Context(), testSet(), &planning.Actions{Creates: []*corev1.Pod{ownedPod("set-a", "7")}})
			if (len(outcome.Failures) > 0) != tc.failed || outcome.Outdated != tc.outdated || (len(outcome.Taken) > 0) != tc.taken {
				t.Errorf("outcome %+v, want failure %t, outdated %t, taken %t", outcome, tc.failed, tc.outdated, tc.taken)
			}
			if tc.failed && !strings.Contains(outcome.Failures[0].Err.Error(), "pod set-a exists and does not belong to the set") {
				t.Errorf("error %q does not name the pod", outcome.Failures[0].Err)
			}
		})
	}
}

func TestCreatesStartSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, done, most, early atomic.Int32
		x := executor(t, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				now := running.Add(1)
				if now > done.Load()+1 {
					early.Add(1)
				}
				most.Store(max(most.Load(), now))
				<-time.After(time.Second)
				running.Add(-1)
				done.Add(1)
				return nil
			},
		})
		actions := &planning.Actions{}
		for i := range 40 {
			actions.Creates = append(actions.Creates, ownedPod(fmt.Sprint("set-", i), fmt.Sprint(i)))
		}
		if outcome := x.Execute(t.Context(), testSet(), actions); !outcome.Succeeded() || outcome.Writes != 40 {
			t.Errorf("outcome %+v, want 40 writes", outcome)
		}
		if early.Load() > 0 || most.Load() != 8 {
			t.Errorf("%d creates started before enough had succeeded, at most %d at a time, want 0 and 8", early.Load(), most.Load())
		}
	})
}

func TestRefusedCreatesCostFewRequests(t *testing.T) {
	var requests atomic.Int32
	x := executor(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			requests.Add(1)
			return apierrors.NewForbidden(podResource, "set-1", errors.New("exceeded quota"))
		},
	})
	actions := &planning.Actions{}
	for i := range 100 {
		actions.Creates = append(actions.Creates, ownedPod(fmt.Sprint("set-", i), fmt.Sprint(i)))
	}
	outcome := x.Execute(t.Context(), testSet(), actions)
	if requests.Load() != 1 || len(outcome.Failures) != 1 || outcome.Failures[0].Object != "pod set-0" || outcome.Failures[0].Update {
		t.Errorf("%d requests, failures %+v, want one", requests.Load(), outcome.Failures)
	}
}

func TestRefusedPatchDoesNotPreventCreates(t *testing.T) {
	x := executor(t, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewForbidden(podResource, "set-a", errors.New("denied by a policy"))
		},
	})
	outcome := x.Execute(t.Context(), testSet(), &planning.Actions{
		Patches: []planning.PodPatch{{Pod: ownedPod("set-a", "1"), Labels: map[string]*string{"a": nil}}},
		Creates: []*corev1.Pod{ownedPod("set-b", "2")},
	})
	if outcome.Writes != 1 || len(outcome.Failures) != 1 || !outcome.Failures[0].Update || !slices.Equal(outcome.Written, []string{"set-b"}) {
		t.Errorf("outcome %+v, want one create and one failed update", outcome)
	}
}

func TestDeletesRequireTheVersionOfTheDecision(t *testing.T) {
	pod := ownedPod("set-a", "1")
	pod.UID, pod.ResourceVersion = "uid-a", "12"
	var got client.Preconditions
	x := executor(t, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			var all client.DeleteOptions
			all.ApplyOptions(options)
			got = client.Preconditions(*all.Preconditions)
			return nil
		},
	}, testSet().Object)
	outcome := x.Execute(t.Context(), testSet(), &planning.Actions{Deletes: []planning.PodDelete{{Pod: pod, Reason: "ScaleIn"}}})
	want := client.Preconditions{UID: new(types.UID("uid-a")), ResourceVersion: new("12")}
	expect.Equal(t, "preconditions", want, got)
	expect.Equal(t, "deleted", []types.UID{"uid-a"}, outcome.Deleted)
}

func TestStalledRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := executor(t, interceptor.Funcs{
			Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		start := time.Now()
		outcome := x.Execute(t.Context(), testSet(), &planning.Actions{Creates: []*corev1.Pod{ownedPod("set-a", "1"), ownedPod("set-b", "2")}})
		if took := time.Since(start); took != 10*time.Second || len(outcome.Errs) != 1 {
			t.Errorf("took %s, outcome %+v, want one error after 10s", took, outcome)
		}
	})
}

func TestBudgetEndsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := executor(t, interceptor.Funcs{
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
				<-time.After(25 * time.Second)
				return nil
			},
		}, testSet().Object)
		actions := &planning.Actions{}
		for i := range 100 {
			actions.Deletes = append(actions.Deletes, planning.PodDelete{Pod: ownedPod(fmt.Sprint("set-", i), fmt.Sprint(i))})
		}
		outcome := x.Execute(t.Context(), testSet(), actions)
		if !outcome.Incomplete || outcome.Writes == 0 || outcome.Writes > 32 || len(outcome.Written) != outcome.Writes {
			t.Errorf("step with %d writes to pods %v, incomplete %t, want 8 writes every 25s for a minute", outcome.Writes, outcome.Written, outcome.Incomplete)
		}
	})
}

func TestPatchRequests(t *testing.T) {
	pod := ownedPod("set-a", "1")
	pod.UID, pod.ResourceVersion = "uid-a", "12"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "old", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}}, {Name: "other"}}
	ready := []corev1.PodCondition{{Type: "InPlaceUpdateReady", Status: corev1.ConditionFalse}}
	const condition = `{"conditions":[{"type":"InPlaceUpdateReady","status":"False","lastProbeTime":null,"lastTransitionTime":null}]}`
	cases := map[string]struct {
		patch planning.PodPatch
		want  []string
	}{
		"labels and annotations": {
			patch: planning.PodPatch{Labels: map[string]*string{"a": new("1"), "b": nil}, Annotations: map[string]*string{"c": new("2")}},
			want:  []string{`pod {"metadata":{"annotations":{"c":"2"},"labels":{"a":"1","b":null},"resourceVersion":"12","uid":"uid-a"}}`},
		},
		"conditions with labels in one write": {
			patch: planning.PodPatch{Conditions: ready, Labels: map[string]*string{"a": new("1")}},
			want:  []string{`status {"metadata":{"labels":{"a":"1"},"resourceVersion":"12","uid":"uid-a"},"status":` + condition + `}`},
		},
		"images after conditions, resources last": {
			patch: planning.PodPatch{
				Conditions: ready, Labels: map[string]*string{"a": new("1")}, Images: map[string]string{"main": "new"},
				Resources: map[string]corev1.ResourceRequirements{"main": {
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
				}},
			},
			want: []string{
				`status {"metadata":{"resourceVersion":"12","uid":"uid-a"},"status":` + condition + `}`,
				`pod {"metadata":{"labels":{"a":"1"},"resourceVersion":"v1","uid":"uid-a"},"spec":{"containers":[{"image":"new","name":"main"}]}}`,
				`resize {"metadata":{"resourceVersion":"v2","uid":"uid-a"},"spec":{"containers":[{"name":"main","resources":` +
					`{"requests":{"cpu":"1"}}}]}}`,
			},
		},
		"release": {
			patch: planning.PodPatch{Controller: planning.Release},
			want: []string{`pod {"metadata":{"labels":{"seamark.dev/workload":null},` +
				`"ownerReferences":[{"$patch":"delete","uid":"set-uid"}],"resourceVersion":"12","uid":"uid-a"}}`},
		},
		"adopt": {
			patch: planning.PodPatch{Controller: planning.Adopt, Labels: map[string]*string{"a": nil}},
			want: []string{`pod {"metadata":{"labels":{"a":null,"seamark.dev/workload":"CloneSet"},` +
				`"ownerReferences":[{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","name":"set","uid":"set-uid","controller":true,` +
				`"blockOwnerDeletion":true}],"resourceVersion":"12","uid":"uid-a"}}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			send := func(to string, object client.Object, patch client.Patch) error {
				mu.Lock()
				defer mu.Unlock()
				body, err := patch.Data(object)
				got = append(got, to+" "+string(body))
				object.SetResourceVersion(fmt.Sprint("v", len(got)))
				return err
			}
			x := executor(t, interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
					return send("pod", object, patch)
				},
				SubResourcePatch: func(
					_ context.Context, _ client.Client, name string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
				) error {
					return send(name, object, patch)
				},
			}, testSet().Object)
			tc.patch.Pod = pod
			if outcome := x.Execute(t.Context(), testSet(), &planning.Actions{Patches: []planning.PodPatch{tc.patch}}); !outcome.Succeeded() {
				t.Errorf("outcome %+v", outcome)
			}
			expect.Equal(t, "requests", tc.want, got)
		})
	}
}
