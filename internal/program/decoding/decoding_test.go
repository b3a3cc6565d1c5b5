// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package decoding_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/decoding"
	"github.com/seamark-dev/seamark/test/expect"
)

// repaired is a reader of an object that is repaired between the two reads: the first one fails after it has decoded a part.
type repaired struct{ client.Reader }

func (repaired) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if whole, ok := object.(*unstructured.Unstructured); ok {
		whole.Object = map[string]any{
			"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"new": "1"}}, "spec": map[string]any{},
		}
		return nil
	}
	set := object.(*v1alpha1.CloneSet) //nolint:forcetypeassert // The test reads nothing else.
	set.Labels, set.Spec.Replicas = map[string]string{"old": "1"}, new(int32(7))
	return errors.New("json: cannot unmarshal number into Go struct field")
}

// TestSecondReadReplacesTheFirst checks that nothing stays of the read that failed.
func TestSecondReadReplacesTheFirst(t *testing.T) {
	scheme, set := runtime.NewScheme(), &v1alpha1.CloneSet{}
	expect.NoError(t, v1alpha1.AddToScheme(scheme))
	reader := decoding.Reader{Reader: repaired{}, Scheme: scheme}
	expect.NoError(t, reader.Get(t.Context(), client.ObjectKey{Name: "a"}, set))
	if diff := cmp.Diff(map[string]string{"new": "1"}, set.Labels); diff != "" || set.Spec.Replicas != nil {
		t.Errorf("replicas %v, labels (-want +got):\n%s", set.Spec.Replicas, diff)
	}
}

// events is a client whose watches have the events of a test.
type events struct {
	client.WithWatch
	scheme  *runtime.Scheme
	watcher *watch.FakeWatcher
}

func (e events) Scheme() *runtime.Scheme { return e.scheme }

func (e events) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return e.watcher, nil
}

// TestStopEndsAWatch stops a watch that has an event which nobody reads.
func TestStopEndsAWatch(t *testing.T) {
	e := events{scheme: runtime.NewScheme(), watcher: watch.NewFake()}
	expect.NoError(t, v1alpha1.AddToScheme(e.scheme))
	w, err := decoding.NewClient(e).Watch(t.Context(), &v1alpha1.CloneSetList{})
	expect.NoError(t, err)
	e.watcher.Add(&unstructured.Unstructured{})
	w.Stop()
	goleak.VerifyNone(t)
}
