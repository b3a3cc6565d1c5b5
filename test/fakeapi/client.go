// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi builds fake clients. It is separate from builders so that tests without a client
// do not compile client-go.
package fakeapi

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// Client returns the builder of a fake client that has the objects. It selects slices by node.
func Client(tb testing.TB, objects ...client.Object) *fake.ClientBuilder {
	tb.Helper()
	scheme := runtime.NewScheme()
	expect.NoError(
		tb, errors.Join(
			corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), batchv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), policyv1.AddToScheme(scheme),
			admissionregistrationv1.AddToScheme(scheme),
			v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), seamarkv1alpha1.AddToScheme(scheme),
		),
	)
	byNode := func(object client.Object) []string {
		switch slice := object.(type) {
		case *seamarkv1alpha1.ProbeReport:
			return []string{slice.NodeName}
		case *seamarkv1alpha1.ProbePlan:
			return []string{slice.NodeName}
		default:
			return nil
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&seamarkv1alpha1.ProbePlan{}, "nodeName", byNode).WithIndex(&seamarkv1alpha1.ProbeReport{}, "nodeName", byNode)
}

// Before calls check before each get and list, with the verb and the object or list to fill. An error of
// check is the answer.
func Before(check func(verb string, object any) error) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := check("get", o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			if err := check("list", l); err != nil {
				return err
			}
			return c.List(ctx, l, options...)
		},
	}
}

// NodeOf is the index of pods by the field spec.nodeName.
func NodeOf(object client.Object) []string {
	if pod, ok := object.(*corev1.Pod); ok {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// Queue returns the queue of a controller, which ends with the test.
func Queue(tb testing.TB) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	tb.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	tb.Cleanup(q.ShutDown)
	return q
}

// Drain removes all requests from the queue and returns them in order.
func Drain(q workqueue.TypedRateLimitingInterface[reconcile.Request]) []reconcile.Request {
	var requests []reconcile.Request
	for q.Len() > 0 {
		request, _ := q.Get()
		q.Done(request)
		requests = append(requests, request)
	}
	return requests
}

// Store is an informer with fixed objects, which is synced.
type Store struct{ toolscache.Indexer }

// NewStore returns a Store with the objects, which indexes them by namespace too.
func NewStore[T any](tb testing.TB, indexers toolscache.Indexers, objects []T) Store {
	tb.Helper()
	indexer := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	expect.NoError(tb, indexer.AddIndexers(indexers))
	for _, object := range objects {
		expect.NoError(tb, indexer.Add(object))
	}
	return Store{indexer}
}

// GetIndexer returns the objects.
func (s Store) GetIndexer() toolscache.Indexer { return s.Indexer }

// HasSynced returns true.
func (Store) HasSynced() bool { return true }
