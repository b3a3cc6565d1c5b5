// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/follow"
)

const (
	conditionType = "example.com/ok"
	markLabel     = "example.com/state"
)

// createPods creates a marker, and pods whose probes have these results.
func (s *suite) createPods(answers map[string]v1alpha1.ProbeState) {
	s.Helper()
	labels := map[string]string{"app": "install"}
	for name, state := range answers {
		code := 0
		if state == v1alpha1.ProbeFailed {
			code = 1
		}
		cluster.Must(s, s.Client.Create(s.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: labels},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](0),
				Containers: []corev1.Container{{
					Name: "main", Image: cluster.BusyboxImage,
					Command: []string{"sh", "-c", fmt.Sprintf("echo 'exit %d' > /tmp/probe; exec sleep 86400", code)},
				}},
			},
		}))
	}
	policy := func(state v1alpha1.ProbeState) v1alpha1.ProbeMarkerPolicy {
		return v1alpha1.ProbeMarkerPolicy{State: state, Labels: map[string]string{markLabel: string(state)}}
	}
	cluster.Must(s, s.Client.Create(s.Context(), &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "install"},
		Spec: v1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Probes: []v1alpha1.PodContainerProbe{{
				Name: "ok", ContainerName: "main", PodConditionType: conditionType,
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "/tmp/probe"}}},
					PeriodSeconds: 1, TimeoutSeconds: 10, FailureThreshold: 2,
				}},
				MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{policy(v1alpha1.ProbeSucceeded), policy(v1alpha1.ProbeFailed)},
			}},
		},
	}))
}

// marked returns an error if the pod's marks are not those of the state.
func marked(pod *corev1.Pod, state v1alpha1.ProbeState) error {
	want := corev1.ConditionTrue
	if state == v1alpha1.ProbeFailed {
		want = corev1.ConditionFalse
	}
	if got := status(pod); pod.Labels[markLabel] != string(state) || got != want {
		return fmt.Errorf("pod %s has label %q and condition %q, want %q and %q",
			pod.Name, pod.Labels[markLabel], got, state, want)
	}
	return nil
}

// unmarked returns an error if the pod still has marks.
func unmarked(pod *corev1.Pod) error {
	if entry := mark.Entry(pod.ManagedFields); entry != nil {
		return fmt.Errorf("pod %s: Seamark owns %s", pod.Name, entry.FieldsV1.GetRawBytes())
	}
	if value, found := pod.Labels[markLabel]; found || status(pod) != "" {
		return fmt.Errorf("pod %s has label %q and condition %q", pod.Name, value, status(pod))
	}
	return nil
}

func status(pod *corev1.Pod) corev1.ConditionStatus {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == conditionType {
			return pod.Status.Conditions[i].Status
		}
	}
	return ""
}

// allMarked waits until each pod has the marks of its state.
func (s *suite) allMarked(answers map[string]v1alpha1.ProbeState) {
	s.Helper()
	s.Eventually("all pods are marked", func(ctx context.Context) error {
		for name, state := range answers {
			pod := &corev1.Pod{}
			if err := s.Client.Get(ctx, s.Key(name), pod); err != nil {
				return err
			}
			if err := marked(pod, state); err != nil {
				return err
			}
		}
		return nil
	})
}

// watcher records every change of the pods' marks.
type watcher struct {
	answers map[string]v1alpha1.ProbeState
	// turning is the pod whose marks change once, to the state next.
	turning string
	next    v1alpha1.ProbeState
	// finish ends the watch. It returns an error if the watch ended before.
	finish func() error

	mu     sync.Mutex
	seen   int
	turned bool
	wrong  []error
}

// watch starts to compare every version of the marked pods with their states.
func (s *suite) watch(answers map[string]v1alpha1.ProbeState, turning string, next v1alpha1.ProbeState) *watcher {
	s.Helper()
	w := &watcher{answers: answers, turning: turning, next: next}
	w.finish = s.follow(w.note)
	return w
}

// follow calls note with every version of the namespace's pods, until the returned function is called.
func (s *suite) follow(note func(*corev1.Pod)) (finish func() error) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	wait, err := follow.Objects(ctx, s.Client, &corev1.PodList{}, func(event watch.Event) {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			note(pod)
		}
	}, client.InNamespace(s.Namespace))
	if err != nil {
		cancel()
	}
	cluster.Must(s, err)
	return func() error {
		cancel()
		return wait()
	}
}

func (w *watcher) note(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	if pod.Name == w.turning && !w.turned {
		w.turned = marked(pod, w.next) == nil
	}
	state := w.answers[pod.Name]
	if pod.Name == w.turning && w.turned {
		state = w.next
	}
	if err := marked(pod, state); err != nil {
		w.wrong = append(w.wrong, err)
	}
}

// check ends the watch. It fails the test for wrong marks, or if the watch ended early.
func (s *suite) check(what string, w *watcher) {
	s.Helper()
	if err := w.finish(); err != nil {
		s.Errorf("%s: %v", what, err)
	}
	if !w.turned {
		s.Errorf("%s: the watch did not see pod %s change to %s", what, w.turning, w.next)
	}
	for _, err := range w.wrong {
		s.Errorf("%s: %v", what, err)
	}
	s.Logf("%s: %d versions of the pods, %d with wrong marks", what, w.seen, len(w.wrong))
}
