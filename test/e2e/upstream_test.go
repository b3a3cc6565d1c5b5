// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// crds returns Seamark's versions of OpenKruise's CRDs, and OpenKruise's. When the test ends,
// Seamark's are restored.
func (s *suite) crds() (ours, upstream []*apiextensionsv1.CustomResourceDefinition) {
	s.Helper()
	ours, err := env.ReadCRDs("config/crd/bases")
	cluster.Must(s, err)
	ours = slices.DeleteFunc(ours, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Group != appsv1alpha1.GroupName
	})
	for _, crd := range ours {
		upstream = append(upstream, env.Upstream(crd))
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), cluster.Timeout)
		defer cancel()
		if err := s.UseCRDs(ctx, ours); err != nil {
			s.Errorf("restore the CRDs: %v", err)
		}
	})
	return ours, upstream
}

// TestUpstreamCRDs runs Seamark with OpenKruise's CRDs: its additional fields are not stored,
// and everything else works.
func TestUpstreamCRDs(t *testing.T) {
	s := newSuite(t)
	_, upstream := s.crds()
	cluster.Must(t, s.UseCRDs(t.Context(), upstream))

	labels := map[string]string{"app": "moved"}
	s.Create(newPod("moved", "touch /tmp/ok; "+idle, labels), newMarker("moved", labels,
		newProbe("ok", shell(sayAndCheck), condition("test.dev/ok"),
			labelled(appsv1alpha1.ProbeSucceeded, map[string]string{"ok": "true"}),
			labelled(appsv1alpha1.ProbeFailed, map[string]string{"ok": "false"}))))
	s.running("moved")
	s.podIs("moved", hasCondition("test.dev/ok", corev1.ConditionTrue), hasLabel("ok", "true"))
	s.exec("moved", "rm /tmp/ok")
	s.podIs("moved", hasCondition("test.dev/ok", corev1.ConditionFalse), hasLabel("ok", "false"))

	marker := &appsv1alpha1.PodProbeMarker{}
	s.Eventually("the marker's status counts the pod", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, s.Key("moved"), marker); err != nil {
			return err
		}
		if marker.Status.MatchedPods != 1 {
			return fmt.Errorf("status %+v, want one matched pod", marker.Status)
		}
		return nil
	})
	if len(marker.Status.Conditions) != 0 {
		t.Errorf("conditions %v, want none: these CRDs do not have them", marker.Status.Conditions)
	}
	cluster.Must(t, s.Client.Delete(t.Context(), marker))
	s.podIs("moved", lacksCondition("test.dev/ok"), lacksLabel("ok"))
}
