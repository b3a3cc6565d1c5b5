// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/follow"
)

// stream calls see for every object of the list's kind in the test's namespace, and for every
// change, until the test ends. It fails the test if it misses a change.
func (s *suite) stream(list ctrl.ObjectList, see func(o ctrl.Object, deleted bool)) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	wait, err := follow.Objects(ctx, s.Client, list, func(event watch.Event) {
		if o, ok := event.Object.(ctrl.Object); ok {
			see(o, event.Type == watch.Deleted)
		}
	}, ctrl.InNamespace(s.Namespace))
	if err != nil {
		cancel()
		s.Fatalf("follow %T: %v", list, err)
	}
	s.Cleanup(func() {
		cancel()
		if err := wait(); err != nil {
			s.Errorf("follow %T: %v", list, err)
		}
	})
}

// switchLog records which pod is the primary, and which pods are being updated. It is safe for
// concurrent use.
type switchLog struct {
	mu     sync.Mutex
	holder string
	// successor is the announced primary, and crashed the primary that the test has ended. Both may
	// be empty.
	successor, crashed string
	pods               map[string]seenPod
	// expected holds the pods that the test has deleted, and deleted those that it has not.
	expected map[types.UID]bool
	deleted  []string
	switches []string
	caused   int
}

// seenPod is what the log remembers of a pod.
type seenPod struct {
	uid   types.UID
	image string
	// old is the container that runs when the image changes, and the current one otherwise.
	old string
	// updating reports whether the image has changed since the pod was last ready.
	updating bool
}

func newSwitchLog() *switchLog {
	return &switchLog{pods: map[string]seenPod{}, expected: map[types.UID]bool{}}
}

// holds handles a change of the Lease. A release is not a switch, and a switch to the announced
// successor, or from a primary that the test has ended, is not caused by an update.
func (l *switchLog) holds(name, successor string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	announced := name != "" && name == l.successor
	if l.successor = successor; name == "" || name == l.holder {
		return
	}
	if l.holder != "" {
		why := ""
		if l.pods[l.holder].updating && !announced && l.crashed != l.holder {
			l.caused++
			why = ", by the update"
		}
		l.switches = append(l.switches, fmt.Sprintf("%s %s -> %s%s", at.Format("15:04:05.000"), l.holder, name, why))
	}
	l.holder, l.crashed = name, ""
}

// crashes notes that the test ends the process of a primary.
func (l *switchLog) crashes(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crashed = name
}

// sees handles a change of a pod.
func (l *switchLog) sees(pod *corev1.Pod, deleted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, known := l.pods[pod.Name]
	now := seenPod{uid: pod.UID, image: pod.Spec.Containers[0].Image}
	if len(pod.Status.ContainerStatuses) != 0 {
		now.old = pod.Status.ContainerStatuses[0].ContainerID
	}
	switch {
	case deleted || pod.DeletionTimestamp != nil:
		if known && old.uid == pod.UID && !l.expected[pod.UID] {
			l.deleted = append(l.deleted, pod.Name)
			l.expected[pod.UID] = true
		}
		now.updating = old.updating
	case known && old.uid == pod.UID && old.image != now.image:
		now.updating, now.old = true, old.old
	case known && old.uid == pod.UID && old.updating && (ready(pod) != nil || now.old == old.old):
		now.updating, now.old = true, old.old
	}
	l.pods[pod.Name] = now
}

// expects notes that the test deletes a pod.
func (l *switchLog) expects(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected[uid] = true
}

// begin starts to count the switches of an update.
func (l *switchLog) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caused, l.switches = 0, nil
}

// end returns the switches since begin, and how many of them ended an updated primary.
func (l *switchLog) end() (caused int, all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.caused, l.switches
}

// unexpected returns the pods that were deleted, and not by the test.
func (l *switchLog) unexpected() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deleted
}

// TestSwitchLog checks which switches count as caused by an update.
func TestSwitchLog(t *testing.T) {
	t.Parallel()
	pod := func(name, image, container string, isReady bool) *corev1.Pod {
		p := &corev1.Pod{Spec: template("x").Spec}
		p.Name, p.UID = name, types.UID(name)
		p.Spec.Containers[0].Image = image
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			ContainerID: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
		status := corev1.ConditionFalse
		if isReady {
			status = corev1.ConditionTrue
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		return p
	}
	l, now := newSwitchLog(), time.Unix(0, 0)
	check := func(what string, caused, all int) {
		t.Helper()
		if got, list := l.end(); got != caused || len(list) != all {
			t.Errorf("%s: %d of %d switches, want %d of %d: %v", what, got, len(list), caused, all, list)
		}
	}
	for _, name := range []string{"a", "b"} {
		l.sees(pod(name, "1", "old", true), false)
	}
	l.holds("a", "", now)
	check("first primary", 0, 0)
	l.holds("", "", now)
	l.holds("b", "", now)
	check("handover", 0, 1)
	l.sees(pod("b", "2", "old", false), false)
	l.holds("", "", now)
	l.holds("a", "", now)
	check("update of the primary", 1, 2)
	l.sees(pod("b", "2", "new", true), false)
	l.sees(pod("a", "2", "old", true), false)
	l.sees(pod("a", "2", "new", true), false)
	l.holds("b", "", now)
	check("handover after the update of the secondary", 1, 3)
	l.sees(pod("b", "3", "new", true), false)
	l.holds("b", "a", now)
	l.holds("a", "", now)
	check("announced handover by a primary that is being updated", 1, 4)
	l.sees(pod("a", "3", "new", true), false)
	l.crashes("a")
	l.holds("b", "", now)
	check("crash of a primary that is updated then", 1, 5)
	l.begin()
	check("begin", 0, 0)
	l.sees(pod("a", "2", "new", true), true)
	if got := l.unexpected(); len(got) != 1 {
		t.Errorf("unexpected deletions %v, want one", got)
	}
}
