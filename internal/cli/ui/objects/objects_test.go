// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/ui/objects"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// reader returns the sets in pages as an API server does, or the error.
type reader struct {
	client.Reader
	sets  []v1alpha1.SidecarSet
	err   error
	pages int
}

func (r *reader) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	r.pages++
	if r.err != nil {
		return r.err
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	var first int
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &first); err != nil {
			return err
		}
	}
	last := min(first+int(o.Limit), len(r.sets))
	into, _ := list.(*v1alpha1.SidecarSetList)
	into.Items = slices.Clone(r.sets[first:last])
	if into.Continue = ""; last < len(r.sets) {
		into.Continue = fmt.Sprint(last)
	}
	return nil
}

func set(name string, conditions ...metav1.Condition) v1alpha1.SidecarSet {
	s := v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Status.Conditions = conditions
	return s
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestProblems(t *testing.T) {
	found, err := objects.Problems(t.Context(), &reader{sets: []v1alpha1.SidecarSet{
		set("good", condition(v1alpha1.SidecarSetAccepted, metav1.ConditionTrue, "Accepted", "")),
		set("paused", condition(v1alpha1.SidecarSetInjecting, metav1.ConditionFalse, "Paused", "")),
		set("refused", condition(v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, "NameConflict", "spec.containers[0].name: taken"),
			condition(v1alpha1.SidecarSetInjecting, metav1.ConditionFalse, "NeverAccepted", "")),
		set("old", condition(v1alpha1.SidecarSetUpgradable, metav1.ConditionFalse, "MustBeRecreated", "3 pods")),
		set("new"),
	}})
	want := []model.ObjectProblem{
		{Kind: "SidecarSet", Name: "refused", Reason: "NameConflict", Message: "spec.containers[0].name: taken"},
		{Kind: "SidecarSet", Name: "old", Reason: "MustBeRecreated", Message: "3 pods"},
	}
	if err != nil || !cmp.Equal(found, want) {
		t.Errorf("error %v, problems differ: %s", err, cmp.Diff(want, found))
	}
}

func TestProblemsAreBounded(t *testing.T) {
	refused := condition(v1alpha1.SidecarSetAccepted, metav1.ConditionFalse, "NameConflict", strings.Repeat("x", 32<<10))
	for bad, pages := range map[int]int{0: 1, 99: 10, 2000: 1} {
		r := &reader{}
		for i := range max(1000, bad) {
			if s := set(fmt.Sprint(i), refused); i < bad {
				r.sets = append(r.sets, s)
			} else if bad > 0 {
				r.sets = append(r.sets, set(s.Name))
			}
		}
		found, err := objects.Problems(t.Context(), r)
		if err != nil || len(found) != min(bad, 100) || r.pages != pages {
			t.Errorf("%d problems: error %v, %d shown, %d pages read, want %d", bad, err, len(found), r.pages, pages)
		}
		for _, problem := range found {
			if len(problem.Message) > 1000 {
				t.Fatalf("a message has %d bytes", len(problem.Message))
			}
		}
	}
}

func TestErrors(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "sidecarsets"}
	for _, err := range []error{
		apierrors.NewForbidden(resource, "", nil), apierrors.NewNotFound(resource, ""), &meta.NoResourceMatchError{},
	} {
		if found, got := objects.Problems(t.Context(), &reader{err: err}); got != nil || found == nil || len(found) > 0 {
			t.Errorf("%v: error %v and %d problems, want none", err, got, len(found))
		}
	}
	broken := errors.New("broken")
	if _, err := objects.Problems(t.Context(), &reader{err: broken}); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
