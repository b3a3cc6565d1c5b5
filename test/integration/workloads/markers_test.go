// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// TestProgramEndsWhenTheCRDOfMarkersIsInstalled installs the CRD of PodProbeMarkers while the program
// runs. After its next start, a marker that writes a label of a set's selector is reported, and no
// longer when it is deleted.
func TestProgramEndsWhenTheCRDOfMarkersIsInstalled(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.CRDDir("config/crd/workloads"))
	w := newWorldWithoutProgram(t, e)
	set := w.cloneSet("web", 1, func(s *v1alpha1.CloneSet) { s.Spec.Template.Labels["tier"] = "front" })
	running, err := program.New(w.Component(w, workloads.Name))
	w.Must(err)
	done := make(chan error, 1)
	go func() { done <- running.Run(t.Context()) }()
	w.settled(set, 1, "image:1")

	crds, err := env.ReadCRDs("config/crd/bases")
	w.Must(err)
	for _, crd := range crds {
		if crd.Spec.Names.Kind == "PodProbeMarker" {
			w.Create(crd)
		}
	}
	marker := &v1alpha1.PodProbeMarker{
		ObjectMeta: w.Meta("app"),
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
	w.Until("the marker is created", func() error { return e.Client.Create(t.Context(), marker) }) // The CRD is being established.
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
		w.Shows(set, fmt.Sprintf("SelectorMarked is %s", want), func() error {
			found := slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.CloneSetCondition) bool { return c.Type == "SelectorMarked" && c.Status == want })
			return await.ErrorIf(!found, "conditions %v", set.Status.Conditions)
		})
	}
	reported(corev1.ConditionTrue)
	w.Delete(marker)
	reported(corev1.ConditionFalse)
}
