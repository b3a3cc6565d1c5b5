// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestMarks(t *testing.T) {
	limited := Mark{Limited: LimitLoop}
	refused := func(reason string) Mark { return Mark{Refused: map[string]string{"p": reason}} }
	q := fakeapi.Queue(t)
	m := &Marks{}
	expect.NoError(t, m.Source().Start(t.Context(), q))
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
		expect.Equal(t, fmt.Sprintf("%s: changed markers", step.name), step.changed, changed)
		for marker, want := range step.problems {
			expect.Equal(t, fmt.Sprintf("%s: problem of %s", step.name, marker), want, m.OfMarker(name(marker))[name(step.pod)])
		}
	}
	if len(m.byMarker)+len(m.markers) > 0 {
		t.Errorf("problems remain: %v, %v", m.byMarker, m.markers)
	}
}

// TestMarksAreBounded checks that few reasons of a pod with many problems are kept, but each marker with a problem.
func TestMarksAreBounded(t *testing.T) {
	m, all := &Marks{}, make(map[types.NamespacedName]Mark)
	for i := range 64 {
		refused := make(map[string]string)
		for j := range 32 {
			refused[fmt.Sprintf("probe-%02d", j)] = strings.Repeat("é", 1000)
		}
		all[types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("marker-%02d", i)}] = Mark{Refused: refused}
	}
	limited := types.NamespacedName{Namespace: "ns", Name: "z"}
	all[limited] = Mark{Limited: LimitLoop}
	pod := types.NamespacedName{Namespace: "ns", Name: "a"}
	m.Set(pod, all)
	if len(m.markers[pod]) != len(all) || m.OfMarker(limited)[pod].Limited != LimitLoop {
		t.Errorf("%d markers with a problem, want %d", len(m.markers[pod]), len(all))
	}
	for i := range 64 {
		want := 1
		if i == 0 {
			want = maxTexts
		}
		refused := m.OfMarker(types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("marker-%02d", i)})[pod].Refused
		expect.Equal(t, fmt.Sprintf("reasons of marker %d", i), want, len(refused))
		for _, reason := range refused {
			if len(reason) > MaxReason || !utf8.ValidString(reason) {
				t.Errorf("reason of %d bytes, want valid text of at most %d", len(reason), MaxReason)
			}
		}
	}
}
