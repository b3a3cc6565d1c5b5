// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet simulates the scheduler and the kubelets of a cluster for tests of controllers: pods
// are bound to a node, become ready, restart containers whose image changes, and end when they are
// deleted.
package kubelet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
)

// Options configure a Kubelet.
type Options struct {
	// Config connects to the API server. It needs all permissions on pods.
	Config *rest.Config
	// Namespace limits the pods, empty for all.
	Namespace string
	// Ready reports whether a pod becomes ready now. If it is nil, all pods do.
	Ready func(*corev1.Pod) bool
	// Failed gets the errors. It must be safe for concurrent use.
	Failed func(error)
}

// Kubelet simulates the nodes of a cluster.
type Kubelet struct {
	options Options
	client  kubernetes.Interface
	pods    cache.SharedIndexInformer
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// New returns a Kubelet.
func New(options Options) (*Kubelet, error) {
	client, err := kubernetes.NewForConfig(options.Config)
	if err != nil {
		return nil, fmt.Errorf("create the client of the kubelet: %w", err)
	}
	k := &Kubelet{
		options: options, client: client,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
	}
	k.pods = cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return client.CoreV1().Pods(options.Namespace).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return client.CoreV1().Pods(options.Namespace).Watch(ctx, o)
			},
		}, client), &corev1.Pod{}, 0, cache.Indexers{})
	enqueue := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			k.queue.Add(name.AsNamespacedName())
		}
	}
	_, err = k.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	return k, nil
}

// Again looks at all pods again, for example because what Ready returns has changed.
func (k *Kubelet) Again() {
	for _, object := range k.pods.GetStore().List() {
		if pod, ok := object.(*corev1.Pod); ok {
			k.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
}

// Run simulates the nodes until the context ends.
func (k *Kubelet) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { k.pods.RunWithContext(ctx) })
	for range 8 {
		running.Go(func() {
			for k.work(ctx) {
			}
		})
	}
	<-ctx.Done()
	k.queue.ShutDown()
	running.Wait()
}

func (k *Kubelet) work(ctx context.Context) bool {
	key, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(key)
	object, exists, err := k.pods.GetStore().GetByKey(key.String())
	pod, ok := object.(*corev1.Pod)
	if err != nil || !exists || !ok {
		return true
	}
	switch err := k.sync(ctx, pod); {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		k.queue.Forget(key)
	case ctx.Err() == nil:
		k.options.Failed(fmt.Errorf("simulate pod %s: %w", key, err))
		k.queue.AddRateLimited(key)
	}
	return true
}

// sync does the next thing that a scheduler or kubelet would do for the pod.
func (k *Kubelet) sync(ctx context.Context, pod *corev1.Pod) error {
	pods := k.client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return nil
	case pod.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: cmp.Or(nodefit.Target(pod), "node")},
		}, metav1.CreateOptions{})
	}
	status := k.status(pod)
	if status == nil {
		return nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion}, "status": status,
	})
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}
