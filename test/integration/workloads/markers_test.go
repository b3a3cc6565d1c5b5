// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestProgramEndsWhenTheCRDOfMarkersIsInstalled installs the CRD of PodProbeMarkers while the program
// runs. After its next start, a marker that writes a label of a set's selector is reported, and no
// longer when it is deleted.
func TestProgramEndsWhenTheCRDOfMarkersIsInstalled(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.CRDDir("config/crd/workloads"))
	w := newScene(t, e)
	set := w.cloneSet("web", 1, func(s *v1alpha1.CloneSet) { s.Spec.Template.Labels["tier"] = "front" })
	cancel, done := w.launch(func(*workloads.Options) {})
	defer cancel()
	w.settled(set, 1, "image:1")

	crds, err := env.ReadCRDs("config/crd/bases")
	w.must(err)
	for _, crd := range crds {
		if crd.Spec.Names.Kind == "PodProbeMarker" {
			w.must(e.Client.Create(t.Context(), crd))
		}
	}
	marker := &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app"},
		Spec: v1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}},
			Probes: []v1alpha1.PodContainerProbe{{
				Name: "app", ContainerName: "main",
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)},
				}}},
				MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{{
					State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"app": "other"},
				}},
			}},
		},
	}
	await.Until(t, "the marker is created", func(ctx context.Context) (string, error) {
		if err := e.Client.Create(ctx, marker); err != nil {
			return err.Error(), nil //nolint:nilerr // The CRD is being established.
		}
		return "", nil
	})
	select {
	case err := <-done:
		if !errors.Is(err, workloads.ErrMarkersServed) {
			t.Fatalf("the program ended with %v, want ErrMarkersServed", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the program runs a minute after the CRD was installed")
	}
	w.start()
	reported := func(want corev1.ConditionStatus) {
		t.Helper()
		await.Poll{Interval: 100 * time.Millisecond, Timeout: time.Minute}.Until(t, fmt.Sprintf("SelectorMarked is %s", want),
			func(ctx context.Context) (string, error) {
				err := e.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
				for _, c := range set.Status.Conditions {
					if c.Type == "SelectorMarked" && c.Status == want {
						return "", err
					}
				}
				return fmt.Sprintf("conditions %v", set.Status.Conditions), err
			})
	}
	reported(corev1.ConditionTrue)
	w.must(e.Client.Delete(t.Context(), marker))
	reported(corev1.ConditionFalse)
}
