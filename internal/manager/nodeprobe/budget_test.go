// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

// limited stores plans up to a size, as an API server does.
type limited struct {
	maxBytes int
	refused  int
	stored   *v1alpha1.NodePodProbeSpec
}

func (l *limited) Create(_ context.Context, _ *metav1.PartialObjectMetadata, _ v1alpha1.NodePodProbeSpec) (*v1alpha1.NodePodProbe, error) {
	return nil, errors.New("not expected")
}

func (l *limited) Replace(_ context.Context, _ string, spec v1alpha1.NodePodProbeSpec) (string, error) {
	if plan.Size(spec) > l.maxBytes {
		l.refused++
		return "", apply.ErrTooLarge
	}
	l.stored = &spec
	return "100", nil
}

func (l *limited) Delete(context.Context, *v1alpha1.NodePodProbe) error {
	return errors.New("not expected")
}

func TestRefusedPlanIsReduced(t *testing.T) {
	const pods = 40
	objects := []client.Object{
		node("node-1", "u"), nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{}),
		builders.Marker("ns", "web").Probe(builders.Probe("p")).Build(),
	}
	for i := range pods {
		objects = append(objects, builders.Pod("ns", fmt.Sprintf("pod-%02d", i)).Label("app", "game").Build())
	}
	plans := &limited{maxBytes: 2000}
	r, recorder := reconciler(t, plans, objects, nil)
	now := time.Unix(1000, 0)
	r.Now = func() time.Time { return now }
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}

	result, err := r.Reconcile(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if plans.stored == nil || len(plans.stored.PodProbes) == 0 || len(plans.stored.PodProbes) >= pods {
		t.Fatalf("stored plan %v, want one with a part of the pods", plans.stored)
	}
	if result.RequeueAfter != reducedFor {
		t.Errorf("requeued after %s, want %s", result.RequeueAfter, reducedFor)
	}
	short := r.Shortages.Of(types.NamespacedName{Namespace: "ns", Name: "web"})["node-1"]
	if want := pods - len(plans.stored.PodProbes); len(short) != 1 || short[0].Pods != want {
		t.Errorf("shortages %v, want one of %d pods", short, want)
	}
	if event := <-recorder.Events; !strings.Contains(event, eventPlanTooLarge) || !strings.Contains(event, "40 pods") {
		t.Errorf("event %q", event)
	}
	if plans.refused < 2 || len(recorder.Events) > 0 {
		t.Errorf("%d more events after %d refusals, want none after several", len(recorder.Events), plans.refused)
	}

	// The reduced budget is remembered, so no other plan is refused until it is tried again.
	refused := plans.refused
	now = now.Add(reducedFor - time.Second)
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != time.Second || plans.refused != refused {
		t.Errorf("result %v, %v after %d more refusals, want a requeue after a second and no refusal", result, err, plans.refused-refused)
	}
	plans.maxBytes = 1 << 20
	now = now.Add(time.Second)
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != 0 || len(plans.stored.PodProbes) != pods {
		t.Errorf("result %v, %v with %d pods stored, want all %d", result, err, len(plans.stored.PodProbes), pods)
	}
	if short := r.Shortages.Of(types.NamespacedName{Namespace: "ns", Name: "web"}); len(short) > 0 {
		t.Errorf("shortages %v, want none", short)
	}
}

func TestRefusedEmptyPlanIsRetried(t *testing.T) {
	plans := &limited{}
	stored := v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Namespace: "ns", Name: "gone", UID: "gone"}}}
	r, _ := reconciler(t, plans, []client.Object{node("node-1", "u"), nodePodProbe("node-1", "u", stored)}, nil)
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}})
	if !errors.Is(err, apply.ErrTooLarge) || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("error %v, want one that is retried", err)
	}
}
