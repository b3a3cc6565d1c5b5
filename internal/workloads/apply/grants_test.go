// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// fakeGrants permits writes in all namespaces but missing, and API servers may not know it yet in new. As a Reader, it
// knows nothing of sets without a namespace.
type fakeGrants struct {
	missing, new string
	late         bool
}

func (g fakeGrants) Check(namespace string) error {
	if namespace != "" && namespace == g.missing {
		return &grants.MissingError{Namespace: namespace, Late: g.late}
	}
	return nil
}

func (g fakeGrants) Spreads(namespace string) bool { return namespace != "" && namespace == g.new }

// TestPodsOfNamespacesOfASidecarSet patches a pod of one of the namespaces of a SidecarSet, which has none: what is known
// of the rights in the namespace of the pod decides whether the error passes, and the pod is named otherwise.
func TestPodsOfNamespacesOfASidecarSet(t *testing.T) {
	denied := apierrors.NewForbidden(podResource, "x", errors.New(`User "seamark-workloads" cannot patch resource "pods"`))
	for name, test := range map[string]struct {
		grants fakeGrants
		passes bool
	}{
		"the RoleBinding is new":           {fakeGrants{new: "ns"}, true},
		"that of another namespace is":     {fakeGrants{new: "other"}, false},
		"there was none, for a short time": {fakeGrants{missing: "ns"}, true},
		"there is none":                    {fakeGrants{missing: "ns", late: true}, false},
		"there is none in another one":     {fakeGrants{missing: "other", late: true}, false},
		"there is one, and others refuse":  {fakeGrants{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "set-uid"}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "pod-uid"}}
			fake := fakeapi.Client(t, set).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return denied
				},
			}).Build()
			var counted []string
			x := apply.New(apply.Options{
				Client: fake, Live: fake, Grants: test.grants, Parallel: 1, Budget: time.Minute, Timeout: time.Minute, Now: time.Now,
				Wrote: func(string, string, string) {}, Failed: func(kind string) { counted = append(counted, kind) },
			})
			outcome := x.Execute(t.Context(), apply.Set{
				GroupVersionKind: v1alpha1.GroupVersion().WithKind("SidecarSet"), Object: set, Namespace: "system", Pods: func(string) bool { return true },
			}, &planning.Actions{Patches: []planning.PodPatch{{Pod: pod, Annotations: map[string]*string{"a": new("b")}}}})
			if test.passes != (len(outcome.Errs) == 1) || test.passes == (len(outcome.Failures) == 1) {
				t.Fatalf("errors %v, failures %+v, want that it passes %t", outcome.Errs, outcome.Failures, test.passes)
			}
			if !slices.Equal(counted, []string{"SidecarSet"}) {
				t.Errorf("failed writes of %q are counted, want one of SidecarSet", counted)
			}
			if !test.passes && outcome.Failures[0].Pod != pod.UID {
				t.Errorf("pod %q failed, want %q", outcome.Failures[0].Pod, pod.UID)
			}
		})
	}
}
