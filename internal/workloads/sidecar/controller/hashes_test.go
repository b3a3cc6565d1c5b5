// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// TestHashesOfASet checks when which annotations are written.
func TestHashesOfASet(t *testing.T) {
	const hash, withoutImage = v1alpha1.SidecarSetHashKey, v1alpha1.SidecarSetHashWithoutImageKey
	const body = `{"metadata":{"annotations":{"kruise.io/sidecarset-hash":"h","kruise.io/sidecarset-hash-without-image":"w"},"uid":"set"}}`
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "system", Name: "logs-1", Annotations: map[string]string{hash: "h", withoutImage: "w"},
	}}
	first := &v1alpha1.SidecarSetInForce{Revision: "logs-1"}
	for name, test := range map[string]struct {
		annotations map[string]string
		force       *v1alpha1.SidecarSetInForce
		yields      bool
		want        []string
	}{
		"none":              {force: first, want: []string{body}},
		"earlier revision":  {annotations: map[string]string{hash: "a", withoutImage: "b"}, force: first, want: []string{body}},
		"another image":     {annotations: map[string]string{hash: "a", withoutImage: "w"}, force: first, want: []string{`{"metadata":{"annotations":{"kruise.io/sidecarset-hash":"h"},"uid":"set"}}`}},
		"written":           {annotations: map[string]string{hash: "h", withoutImage: "w"}, force: first},
		"never accepted":    {},
		"refused":           {force: &v1alpha1.SidecarSetInForce{Revision: "logs-1", Refused: "a reason"}},
		"not cached yet":    {force: &v1alpha1.SidecarSetInForce{Revision: "logs-2"}},
		"OpenKruise serves": {force: first, yields: true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			c := New(Options{Namespace: "system", Pause: reconciler.NewPause(), Client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(object)
					got = append(got, string(data))
					return err
				},
			}).Build()})
			c.Revisions = fakeapi.NewStore(t, nil, []any{revision})
			c.Pause.Set(test.yields)
			set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "set", Annotations: test.annotations}}
			if err := c.annotate(t.Context(), set, test.force); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}
