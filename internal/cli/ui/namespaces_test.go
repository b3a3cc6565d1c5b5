// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

// tenant is an API server that lists pods and markers only in some namespaces. "" means all.
type tenant struct {
	client.Reader
	// all are the namespaces that it lists, or nil if this is forbidden.
	all      []string
	readable []string
	lists    chan string
}

func (s *tenant) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	s.lists <- o.Namespace
	metadata, _ := list.(*metav1.PartialObjectMetadataList)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
	switch {
	case metadata.Kind == "NamespaceList" && s.all != nil:
		for _, name := range s.all[:min(len(s.all), int(o.Limit))] {
			metadata.Items = append(metadata.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	case metadata.Kind == "NamespaceList" || !slices.Contains(s.readable, o.Namespace):
		return forbidden
	}
	return nil
}

func TestVisibleNamespaces(t *testing.T) {
	var many []string
	for i := range 600 {
		many = append(many, fmt.Sprintf("team-%03d", i))
	}
	for name, test := range map[string]struct {
		tenant tenant
		chosen []string
		own    string
		want   model.Namespaces
		// lists is the number of requests.
		lists int
	}{
		"everything": {
			tenant{all: []string{"a", "b"}, readable: []string{""}}, nil, "a", model.Namespaces{Whole: true, Names: []string{"a", "b"}}, 3,
		},
		"everything, no names": {tenant{readable: []string{""}}, nil, "a", model.Namespaces{Whole: true, Names: []string{"a"}}, 3},
		"some of the listed": {
			tenant{all: []string{"a", "b", "c"}, readable: []string{"a", "c"}}, nil, "b",
			model.Namespaces{Names: []string{"a", "c"}, Shown: []string{"a", "c"}}, 9,
		},
		"names are not listed": {tenant{readable: []string{"own"}}, nil, "own", model.Namespaces{Names: []string{"own"}, Shown: []string{"own"}}, 5},
		"nothing":              {tenant{}, nil, "own", model.Namespaces{Names: []string{}, Shown: []string{}}, 5},
		"chosen": {
			tenant{readable: []string{""}}, []string{"b", "a"}, "", model.Namespaces{Names: []string{"b", "a"}, Shown: []string{"b", "a"}}, 2,
		},
		"many, of which 101 are tried": {
			tenant{all: many, readable: many}, nil, "team-500", model.Namespaces{Names: append(slices.Clone(many[:100]), "team-500"), Shown: many[:20]}, 205,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.tenant.lists = make(chan string, 1000)
			now := time.Unix(0, 0)
			v := &visible{reader: &test.tenant, chosen: test.chosen, own: test.own, now: func() time.Time { return now }}
			for range 2 {
				got, err := v.get(t.Context())
				expect.NoError(t, err)
				expect.Equal(t, "namespaces", test.want, got)
			}
			expect.Equal(t, "requests", test.lists, len(test.tenant.lists))
			scopes, err := v.scopes(t.Context(), "")
			want := test.want.Shown
			if test.want.Whole {
				want = []string{""}
			}
			if len(want) == 0 {
				expect.Equal(t, "exit code", exit.Access, exit.Code(err))
				return
			}
			expect.Equal(t, "scopes", want, scopes)
			now = now.Add(remembered)
			if _, err := v.get(t.Context()); err != nil || len(test.tenant.lists) == test.lists {
				t.Errorf("error %v, and no new requests after %s", err, remembered)
			}
		})
	}
}

func TestNamespacesOf(t *testing.T) {
	for flag, want := range map[string]string{
		"a,b,a": "[a b]", "a,": `--namespace: "a," is invalid: "" must be the name of a namespace`, "a,B": `"B" must be the name of a namespace`,
		strings.Repeat("a,", 20) + "b": "[a b]",
	} {
		names, err := namespacesOf(flag)
		if got := fmt.Sprint(names, err); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", flag, got, want)
		}
	}
}
