// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi builds fake clients. It is separate from builders so that tests without a client
// do not compile client-go.
package fakeapi

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// Client returns the builder of a fake client that has the objects. It selects slices by node.
func Client(tb testing.TB, objects ...client.Object) *fake.ClientBuilder {
	tb.Helper()
	scheme := runtime.NewScheme()
	expect.NoError(tb, errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), batchv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), seamarkv1alpha1.AddToScheme(scheme)))
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
