// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/migrate/survey"
	"github.com/seamark-dev/seamark/test/expect"
)

// The status of a CloneSet has the name of its update revision, and that of a DaemonSet the hash.
func TestReadBackReadsUpdateRevisions(t *testing.T) {
	scheme := runtime.NewScheme()
	expect.NoError(t, (&runtime.SchemeBuilder{appsv1.AddToScheme, v1alpha1.AddToScheme}).AddToScheme(scheme))
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "game", Name: name} }
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.CloneSet{ObjectMeta: meta("arena"), Status: v1alpha1.CloneSetStatus{UpdateRevision: "arena-1"}},
		&v1alpha1.DaemonSet{ObjectMeta: meta("agent"), Status: v1alpha1.DaemonSetStatus{DaemonSetHash: "2", UpdateRevision: "2"}},
		&appsv1.ControllerRevision{ObjectMeta: meta("arena-1")}, &appsv1.ControllerRevision{ObjectMeta: meta("agent-2")},
		&appsv1.ControllerRevision{ObjectMeta: meta("arena-0")},
	).Build()
	read, _ := survey.ReadBack(t.Context(), reader, "game")
	var got []string
	for _, revision := range read.Revisions {
		got = append(got, revision.Name)
	}
	expect.Equal(t, "update revisions", []string{"agent-2", "arena-1"}, got)
}
