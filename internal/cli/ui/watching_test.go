// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
)

// lists answers lists and watches by the kind of the list.
type lists struct {
	client.WithWatch
	errors, watches map[string]error
}

func (l lists) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return l.errors[list.(*metav1.PartialObjectMetadataList).Kind]
}

func (l lists) Watch(_ context.Context, list client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
	return watch.NewFake(), l.watches[list.(*metav1.PartialObjectMetadataList).Kind]
}

func TestReadableSets(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		errors, watches map[string]error
		want            []string
		note            string
	}{
		"all": {nil, nil, []string{"CloneSet", "StatefulSet", "DaemonSet"}, ""},
		"one is not installed, and one is forbidden": {
			map[string]error{"CloneSetList": &meta.NoKindMatchError{}, "DaemonSetList": forbidden}, nil, []string{"StatefulSet"},
			"no permission to list daemonsets.apps.kruise.io in namespace ns",
		},
		"one may be listed, and not watched": {
			nil, map[string]error{"CloneSetList": forbidden}, []string{"StatefulSet", "DaemonSet"},
			"no permission to watch clonesets.apps.kruise.io in namespace ns",
		},
	} {
		t.Run(name, func(t *testing.T) {
			readable, note, err := readableSets(t.Context(), lists{errors: test.errors, watches: test.watches}, "ns")
			expect.NoError(t, err)
			var got []string
			for i := range readable {
				got = append(got, readable[i].Kind)
			}
			expect.Equal(t, "kinds", test.want, got)
			expect.Equal(t, "note", test.note, note)
		})
	}
	if _, _, err := readableSets(t.Context(), lists{errors: map[string]error{"CloneSetList": broken}}, "ns"); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
