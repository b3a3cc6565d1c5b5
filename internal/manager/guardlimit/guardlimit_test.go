// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package guardlimit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// recorded records the writes.
type recorded struct {
	exempt []bool
	err    error
}

func (r *recorded) GuardExempt(_ context.Context, _ *corev1.Pod, exempt bool) (string, error) {
	r.exempt = append(r.exempt, exempt)
	return "", r.err
}

// start is when the pods start.
func start() time.Time { return time.Unix(1_700_000_000, 0) }

func game(namespace string) *corev1.Pod {
	pod := builders.Pod(namespace, "a").Label(builders.GuardLabel, "delete").Build()
	pod.Status.StartTime = new(metav1.NewTime(start()))
	return pod
}

// limited returns a Reconciler with a guard in the namespaces "games" and "excluded" for an hour, and a guard without a maximum in "ever".
func limited(t *testing.T, pods *recorded, stored ...client.Object) *Reconciler {
	t.Helper()
	budgets := []*policyv1.PodDisruptionBudget{
		builders.Guard("games", "busy", false, "delete"), builders.Guard("excluded", "busy", false, "delete"), builders.Guard("ever", "busy", false, "delete"),
	}
	for _, budget := range budgets[:2] {
		budget.Annotations = map[string]string{v1alpha1.GuardMaxDurationKey: "1h"}
	}
	return New(Options{
		Reader:  gather.Reader{Client: fakeapi.Client(t, stored...).WithReturnManagedFields().Build(), Compiler: plan.NewCompiler()},
		Budgets: fakeapi.NewStore(t, nil, budgets), Marked: &controllers.Inbox{}, Excluded: []string{"excluded"}, Pods: pods,
		Recorder: record.NewFakeRecorder(10), Metrics: metrics.New(prometheus.NewRegistry()),
		Now: func() time.Time { return start().Add(time.Hour) },
	})
}

func TestReconcile(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", nil)
	later := game("games")
	later.Status.StartTime = new(metav1.NewTime(start().Add(time.Minute)))
	held := later.DeepCopy()
	held.Labels[v1alpha1.GuardExemptKey] = v1alpha1.GuardExemptMaxDuration
	ending := game("games")
	ending.Finalizers, ending.DeletionTimestamp = []string{"a/b"}, new(metav1.NewTime(start()))
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		err   error
		want  []bool
		again time.Duration
		event bool
	}{
		"no pod":         {},
		"at the limit":   {pod: game("games"), want: []bool{true}, event: true},
		"before":         {pod: later, again: time.Minute},
		"held again":     {pod: held, want: []bool{false}, again: time.Minute},
		"gone":           {pod: game("games"), err: fmt.Errorf("pod: %w", apply.ErrGone), want: []bool{true}},
		"outdated":       {pod: game("games"), err: fmt.Errorf("pod: %w", apply.ErrOutdated), want: []bool{true}, again: pause},
		"refused":        {pod: game("games"), err: fmt.Errorf("pod: %w", refused), want: []bool{true}, again: refusedPause},
		"ending":         {pod: ending},
		"excluded":       {pod: game("excluded")},
		"for ever":       {pod: game("ever")},
		"without guards": {pod: game("other")},
	} {
		t.Run(name, func(t *testing.T) {
			request, pods := reconcile.Request{}, &recorded{err: test.err}
			r := limited(t, pods)
			if test.pod != nil {
				request.NamespacedName = client.ObjectKeyFromObject(test.pod)
				r = limited(t, pods, test.pod.DeepCopy())
			}
			result, err := r.Reconcile(t.Context(), request)
			expect.NoError(t, err)
			expect.Equal(t, "writes", test.want, pods.exempt)
			expect.Equal(t, "again", test.again, result.RequeueAfter)
			events := r.Recorder.(*record.FakeRecorder).Events //nolint:forcetypeassert // a panic fails the test
			expect.Equal(t, "events", test.event, len(events) == 1)
		})
	}
}

func TestPodEvents(t *testing.T) {
	released := game("other")
	released.Labels[v1alpha1.GuardExemptKey] = v1alpha1.GuardExemptMaxDuration
	changed := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := game("games")
		change(pod)
		return pod
	}
	for name, test := range map[string]struct {
		before, after *corev1.Pod
		want          int
	}{
		"new":                     {nil, game("games"), 1},
		"new, without a maximum":  {nil, game("ever"), 0},
		"new, without guards":     {nil, game("other"), 0},
		"released before":         {nil, released, 1},
		"same":                    {game("games"), changed(func(p *corev1.Pod) { p.ResourceVersion = "2" }), 0},
		"labels":                  {game("games"), changed(func(p *corev1.Pod) { p.Labels["a"] = "b" }), 1},
		"phase":                   {game("games"), changed(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), 1},
		"start":                   {game("games"), changed(func(p *corev1.Pod) { p.Status.StartTime = nil }), 1},
		"another pod":             {game("games"), changed(func(p *corev1.Pod) { p.UID = "b" }), 1},
		"labels, without a guard": {game("ever"), released, 1},
		"gone":                    {game("games"), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			q := fakeapi.Queue(t)
			limited(t, &recorded{}).podChanged(t.Context(), q, test.before, test.after, false)
			expect.Equal(t, "requests", test.want, len(fakeapi.Drain(q)))
		})
	}
}

func TestInvalidMaximum(t *testing.T) {
	r := limited(t, &recorded{})
	budget := builders.Guard("games", "busy", false, "delete")
	budget.Annotations = map[string]string{v1alpha1.GuardMaxDurationKey: "soon\x1b"}
	r.guardChanged(t.Context(), fakeapi.Queue(t), nil, budget, true)
	r.guardChanged(t.Context(), fakeapi.Queue(t), budget, budget, false)
	events := r.Recorder.(*record.FakeRecorder).Events //nolint:forcetypeassert // a panic fails the test
	if got := <-events; len(events) > 0 || !strings.Contains(got, `Warning GuardInvalid metadata.annotations[seamark.dev/guard-max-duration]: "soon\x1b" is invalid: must be`) {
		t.Errorf("event %q and %d more", got, len(events))
	}
}
