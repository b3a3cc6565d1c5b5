// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestMarks(t *testing.T) {
	limited := Mark{Limited: LimitLoop}
	refused := func(reason string) Mark { return Mark{Refused: map[string]string{"p": reason}} }
	q := fakeapi.Queue(t)
	m := &Marks{}
	if err := m.Source().Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	name := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	steps := []struct {
		name     string
		pod      string
		problems map[string]Mark
		changed  []string
	}{
		{"no problem", "a", nil, nil},
		{"two markers", "a", map[string]Mark{"web": limited, "api": refused("long")}, []string{"api", "web"}},
		{"unchanged", "a", map[string]Mark{"web": limited, "api": refused("long")}, nil},
		{"second pod", "b", map[string]Mark{"web": limited}, []string{"web"}},
		{"other reason, one less", "a", map[string]Mark{"api": refused("bad")}, []string{"api", "web"}},
		{"gone", "b", nil, []string{"web"}},
		{"last", "a", nil, []string{"api"}},
	}
	for _, step := range steps {
		byMarker := make(map[types.NamespacedName]Mark)
		for marker, problem := range step.problems {
			byMarker[name(marker)] = problem
		}
		m.Set(name(step.pod), byMarker)
		var changed []string
		for _, request := range fakeapi.Drain(q) {
			changed = append(changed, request.Name)
		}
		slices.SortFunc(changed, strings.Compare)
		if diff := cmp.Diff(step.changed, changed); diff != "" {
			t.Errorf("%s: changed markers (-want +got):\n%s", step.name, diff)
		}
		for marker, want := range step.problems {
			if diff := cmp.Diff(want, m.Of(name(marker))[name(step.pod)]); diff != "" {
				t.Errorf("%s: problem of %s (-want +got):\n%s", step.name, marker, diff)
			}
		}
	}
	if len(m.by)+len(m.markers) > 0 {
		t.Errorf("problems remain: %v, %v", m.by, m.markers)
	}
}
