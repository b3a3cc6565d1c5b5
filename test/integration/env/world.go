// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/follow"
	"github.com/seamark-dev/seamark/test/kubelet"
)

// World is a namespace of an API server for one test. Its methods end the test on an error.
type World struct {
	testing.TB
	*Env
	// Namespace is the name of the namespace.
	Namespace string
	// Poll is how the world waits.
	Poll await.Poll
}

// NewWorld creates a namespace for the test.
func NewWorld(tb testing.TB, e *Env) *World {
	tb.Helper()
	return WorldOf(tb, e, e.Namespace(tb))
}

// WorldOf returns the world of a namespace that exists, or of none.
func WorldOf(tb testing.TB, e *Env, namespace string) *World {
	return &World{TB: tb, Env: e, Namespace: namespace, Poll: await.Poll{Interval: 20 * time.Millisecond, Timeout: await.Timeout}}
}

// Must ends the test if there is an error.
func (w *World) Must(err error) {
	w.Helper()
	expect.NoError(w, err)
}

// Meta returns the metadata of an object of the namespace.
func (w *World) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: name}
}

// Create creates the objects.
func (w *World) Create(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		expect.NoErrorf(w, w.Client.Create(w.Context(), object), "create %T %s", object, object.GetName())
	}
}

// CreateFor creates the objects, and deletes them when the test ends.
func (w *World) CreateFor(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		w.Create(object)
		w.Cleanup(func() { _ = w.Client.Delete(context.Background(), object) })
	}
}

// Get reads an object.
func (w *World) Get(object client.Object) {
	w.Helper()
	w.Must(w.Client.Get(w.Context(), client.ObjectKeyFromObject(object), object))
}

// List lists objects of the namespace.
func (w *World) List(list client.ObjectList, opts ...client.ListOption) {
	w.Helper()
	w.Must(w.Client.List(w.Context(), list, append(opts, client.InNamespace(w.Namespace))...))
}

// Delete deletes an object.
func (w *World) Delete(object client.Object, opts ...client.DeleteOption) {
	w.Helper()
	w.Must(w.Client.Delete(w.Context(), object, opts...))
}

// Patch applies a merge patch to an object.
func (w *World) Patch(object client.Object, format string, args ...any) {
	w.Helper()
	w.Must(w.Client.Patch(w.Context(), object, MergePatch(fmt.Sprintf(format, args...))))
}

// Edit reads an object and writes what change makes of it.
func (w *World) Edit(object client.Object, change func()) {
	w.Helper()
	w.Get(object)
	before, ok := object.DeepCopyObject().(client.Object)
	if change(); !ok {
		w.Fatalf("%T is no object", object)
	}
	w.Must(w.Client.Patch(w.Context(), object, client.MergeFrom(before)))
}

// UpdateStatus writes the status of an object.
func (w *World) UpdateStatus(object client.Object) {
	w.Helper()
	w.Must(w.Client.Status().Update(w.Context(), object))
}

// Until waits until the check returns no error.
func (w *World) Until(what string, check func() error) {
	w.Helper()
	w.Poll.Success(w, what, func(context.Context) error { return check() })
}

// Shows waits until the check of an object, which it reads, returns no error.
func (w *World) Shows(object client.Object, what string, check func() error) {
	w.Helper()
	w.Until(what, func() error {
		return errors.Join(w.Client.Get(w.Context(), client.ObjectKeyFromObject(object), object), check())
	})
}

// Condition waits until an object has a condition, and returns it.
func (w *World) Condition(object client.Object, conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	w.Helper()
	var found metav1.Condition
	w.Shows(object, fmt.Sprintf("%s is %s", kind, status), func() error {
		condition := meta.FindStatusCondition(*conditions, kind)
		if condition == nil || condition.Status != status || condition.Reason != reason || condition.ObservedGeneration != object.GetGeneration() {
			return fmt.Errorf("%+v", *conditions)
		}
		found = *condition
		return nil
	})
	return found
}

// Gone waits until an object does not exist.
func (w *World) Gone(object client.Object) {
	w.Helper()
	w.Until(fmt.Sprintf("%T %s is gone", object, object.GetName()), func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it exists"))
	})
}

// Clean deletes all objects of these types in the namespace: nothing collects garbage here.
func (w *World) Clean(types ...client.Object) {
	ctx, cancel := context.WithTimeout(context.Background(), await.Timeout)
	defer cancel()
	for _, object := range types {
		if err := w.Client.DeleteAllOf(ctx, object, client.InNamespace(w.Namespace), client.GracePeriodSeconds(0)); err != nil {
			w.Errorf("clean up: %v", err)
		}
	}
}

// Quota limits a resource of the namespace. The controller of quotas does not run here, so the test writes the status.
func (w *World) Quota(name string, of corev1.ResourceName, hard string) *corev1.ResourceQuota {
	w.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: w.Meta(name)}
	quota.Spec.Hard = corev1.ResourceList{of: resource.MustParse(hard)}
	w.Create(quota)
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{of: resource.MustParse("0")}
	w.UpdateStatus(quota)
	return quota
}

// NodeName returns the name of a node of the world.
func (w *World) NodeName(suffix string) string { return w.Namespace + "-" + suffix }

// ReadyNode creates a node that is ready, with a label world that has the namespace.
func (w *World) ReadyNode(suffix string, taints ...corev1.Taint) *corev1.Node {
	w.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: w.NodeName(suffix), Labels: map[string]string{"world": w.Namespace}}, Spec: corev1.NodeSpec{Taints: taints},
	}
	w.CreateFor(node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	w.UpdateStatus(node)
	return node
}

// RunKubelets simulates the kubelets of the namespace until the test ends. All pods become ready if ready is nil.
func (w *World) RunKubelets(ready func(*corev1.Pod) bool) *kubelet.Kubelet {
	w.Helper()
	return RunKubelets(w, kubelet.Options{
		Config: w.Config, Namespace: w.Namespace, Failed: func(err error) { w.Error(err) }, Ready: ready,
	})
}

// RunKubelets simulates kubelets until the test ends.
func RunKubelets(tb testing.TB, options kubelet.Options) *kubelet.Kubelet {
	tb.Helper()
	nodes, err := kubelet.New(options)
	expect.NoError(tb, err)
	Run(tb, func(ctx context.Context) error {
		nodes.Run(ctx)
		return nil
	})
	return nodes
}

// Run runs a program until the test ends or the function is called. It must end without an error.
func Run(tb testing.TB, program func(context.Context) error) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- program(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error("run the program:", err)
		}
	})
	tb.Cleanup(stop)
	return stop
}

// Requested returns the requests that the API server has completed.
func (w *World) Requested() Requests {
	w.Helper()
	requests, err := w.Requests(w.Context())
	w.Must(err)
	return requests
}

// Events returns the events of the namespace whose reasons are given.
func (w *World) Events(reasons ...string) []corev1.Event {
	w.Helper()
	list := &corev1.EventList{}
	w.List(list)
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return !slices.Contains(reasons, e.Reason) })
}

// ClientOf returns a client with the configuration.
func (e *Env) ClientOf(tb testing.TB, config *rest.Config) client.Client {
	tb.Helper()
	c, err := client.New(config, client.Options{Scheme: e.Scheme})
	expect.NoError(tb, err)
	return c
}

// Refused waits until a write is forbidden with the text: API servers learn of policies by a watch.
func Refused(tb testing.TB, what, text string, write func(context.Context) error) {
	tb.Helper()
	await.Poll{Interval: 50 * time.Millisecond, Timeout: await.Timeout}.Success(tb, what+" is refused", func(ctx context.Context) error {
		switch err := write(ctx); {
		case err == nil:
			return errors.New("it succeeds")
		case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text):
			return fmt.Errorf("error %w, want a refusal of the policy", err)
		default:
			return nil
		}
	})
}

// FollowPods calls see with each event of the pods of the namespace until the test ends.
func (w *World) FollowPods(see func(watch.Event)) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	wait, err := follow.Objects(ctx, w.Client, &corev1.PodList{}, see, client.InNamespace(w.Namespace))
	w.Cleanup(func() {
		cancel()
		if err == nil {
			expect.NoErrorf(w, wait(), "follow pods")
		}
	})
	w.Must(err)
}
