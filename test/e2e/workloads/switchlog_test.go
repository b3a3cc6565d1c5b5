// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
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

// switchLog collects the changes of the Lease and of the pods. Two watches deliver them, so a change
// may arrive before an earlier one of the other kind. The log evaluates them in the order of their
// resource versions: those of all kinds are revisions of one etcd. It is safe for concurrent use.
type switchLog struct {
	mu      sync.Mutex
	changes []change
	// lease and pods are the latest versions that the watches have delivered.
	lease, pods uint64
}

// change is a change, and what it says about the roles.
type change struct {
	version uint64
	apply   func(*roles)
}

func (l *switchLog) add(version uint64, apply func(*roles)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, change{version, apply})
}

// leaseChanged notes a change of the Lease.
func (l *switchLog) leaseChanged(lease *coordinationv1.Lease) {
	version, at := versionOf(lease), time.Now()
	l.add(version, func(r *roles) {
		r.holds(ptr.Deref(lease.Spec.HolderIdentity, ""), lease.Annotations[successorAnnotation], at)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease = max(l.lease, version)
}

// podChanged notes a change of a pod.
func (l *switchLog) podChanged(pod *corev1.Pod, deleted bool) {
	version, at := versionOf(pod), time.Now()
	l.add(version, func(r *roles) { r.sees(pod, deleted, at) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods = max(l.pods, version)
}

// crashes notes that the test ends the process of the primary that the Lease names.
func (l *switchLog) crashes(lease *coordinationv1.Lease) {
	l.add(versionOf(lease)+1, func(r *roles) { r.crashed = *lease.Spec.HolderIdentity })
}

// expects notes that the test deletes a pod.
func (l *switchLog) expects(uid types.UID) { l.add(0, func(r *roles) { r.expected[uid] = true }) }

// has reports whether the log has the changes of the Lease and of the pods until these versions.
func (l *switchLog) has(lease, pods uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease >= lease && l.pods >= pods
}

// between returns the roles at a version, and what happened to them after an earlier one.
func (l *switchLog) between(after, until uint64) *roles {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.changes, func(a, b change) int { return cmp.Compare(a.version, b.version) })
	r := newRoles()
	for _, c := range l.changes {
		if c.version <= after {
			c.apply(r)
		}
	}
	r.caused, r.switches, r.deleted, r.timeline = 0, nil, nil, nil
	for _, c := range l.changes {
		if c.version > after && c.version <= until {
			c.apply(r)
		}
	}
	return r
}

// versionOf returns the resource version of an object of the API server.
func versionOf(o ctrl.Object) uint64 {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("resource version of %s: %v", o.GetName(), err))
	}
	return version
}

// roles are which pod is the primary, and which pods are being updated.
type roles struct {
	holder string
	// released reports whether the holder has released the role.
	released bool
	// successor is the announced primary, and crashed the primary that the test has ended, until it
	// is replaced or is the primary again. Both may be empty.
	successor, crashed string
	pods               map[string]seenPod
	// expected holds the pods that the test has deleted, and deleted those that it has not.
	expected map[types.UID]bool
	deleted  []string
	// switches describes the changes of the primary, and caused counts those that an update caused.
	switches []string
	caused   int
	// timeline describes all changes of the Lease and of the pods that matter here.
	timeline []string
}

// seenPod is what is known of a pod.
type seenPod struct {
	uid   types.UID
	image string
	// old is the container that runs when the image changes, and the current one otherwise.
	old string
	// updating reports whether the image has changed since the pod was last ready.
	updating bool
	// shown is how the timeline describes the pod.
	shown string
}

func newRoles() *roles { return &roles{pods: map[string]seenPod{}, expected: map[types.UID]bool{}} }

func (r *roles) note(at time.Time, format string, args ...any) string {
	text := at.Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	r.timeline = append(r.timeline, text)
	return text
}

// holds handles a change of the Lease. A release is not a switch, and a switch to the announced
// successor, or from a primary that the test has ended, is not caused by an update.
func (r *roles) holds(name, successor string, at time.Time) {
	announced := name != "" && name == r.successor
	if r.successor != successor {
		r.note(at, "successor %q", successor)
	}
	if r.successor = successor; name == "" {
		if !r.released {
			r.note(at, "%s released the role", r.holder)
		}
		r.released = true
		return
	}
	if name == r.holder && !r.released {
		return
	}
	switch {
	case r.holder == "" || r.holder == name:
		r.note(at, "%s is the primary", name)
	case r.pods[r.holder].updating && !announced && r.crashed != r.holder:
		r.caused++
		r.switches = append(r.switches, r.note(at, "%s -> %s, by the update", r.holder, name))
	default:
		r.switches = append(r.switches, r.note(at, "%s -> %s", r.holder, name))
	}
	r.holder, r.released, r.crashed = name, false, ""
}

// sees handles a change of a pod.
func (r *roles) sees(pod *corev1.Pod, deleted bool, at time.Time) {
	old, known := r.pods[pod.Name]
	now := seenPod{uid: pod.UID, image: pod.Spec.Containers[0].Image}
	if len(pod.Status.ContainerStatuses) != 0 {
		now.old = pod.Status.ContainerStatuses[0].ContainerID
	}
	ends := deleted || pod.DeletionTimestamp != nil
	switch {
	case ends:
		if known && old.uid == pod.UID && !r.expected[pod.UID] {
			r.deleted = append(r.deleted, pod.Name)
			r.expected[pod.UID] = true
		}
		now.updating = old.updating
	case known && old.uid == pod.UID && old.image != now.image:
		now.updating, now.old = true, old.old
	case known && old.uid == pod.UID && old.updating && (ready(pod) != nil || now.old == old.old):
		now.updating, now.old = true, old.old
	}
	now.shown = fmt.Sprintf("%s: role %q, image %s, updating %t, ready %t, ends %t",
		pod.Name, pod.Labels["role"], now.image, now.updating, ready(pod) == nil, ends)
	if now.shown != old.shown {
		r.note(at, "%s", now.shown)
	}
	r.pods[pod.Name] = now
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
	r, now := newRoles(), time.Unix(0, 0)
	check := func(what string, caused, all int) {
		t.Helper()
		if r.caused != caused || len(r.switches) != all {
			t.Errorf("%s: %d of %d switches, want %d of %d: %v", what, r.caused, len(r.switches), caused, all, r.switches)
		}
	}
	for _, name := range []string{"a", "b"} {
		r.sees(pod(name, "1", "old", true), false, now)
	}
	r.holds("a", "", now)
	check("first primary", 0, 0)
	r.holds("", "", now)
	r.holds("b", "", now)
	check("handover", 0, 1)
	r.sees(pod("b", "2", "old", false), false, now)
	r.holds("", "", now)
	r.holds("a", "", now)
	check("update of the primary", 1, 2)
	r.sees(pod("b", "2", "new", true), false, now)
	r.sees(pod("a", "2", "old", true), false, now)
	r.sees(pod("a", "2", "new", true), false, now)
	r.holds("b", "", now)
	check("handover after the update of the secondary", 1, 3)
	r.sees(pod("b", "3", "new", true), false, now)
	r.holds("b", "a", now)
	r.holds("a", "", now)
	check("announced handover by a primary that is being updated", 1, 4)
	r.sees(pod("a", "3", "new", true), false, now)
	r.crashed = "a"
	r.holds("a", "", now)
	r.holds("b", "", now)
	check("crash of a primary that is updated then", 1, 5)
	r.crashed = "b"
	r.holds("", "", now)
	r.holds("b", "", now)
	check("crash of a primary that is the primary again", 1, 5)
	r.holds("a", "", now)
	check("update of the primary after its crash", 2, 6)
	r.sees(pod("a", "2", "new", true), true, now)
	if len(r.deleted) != 1 {
		t.Errorf("unexpected deletions %v, want one", r.deleted)
	}
}

// TestSwitchLogOrder lets the watches deliver the changes in another order than they were made in,
// and some of them after the end of the update that made them.
func TestSwitchLogOrder(t *testing.T) {
	t.Parallel()
	lease := func(version, holder string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
		l.ResourceVersion = version
		return l
	}
	pod := func(version, image string) *corev1.Pod {
		p := &corev1.Pod{Spec: template("x").Spec}
		p.Name, p.UID, p.ResourceVersion, p.Spec.Containers[0].Image = "a", "a", version, image
		return p
	}
	l := &switchLog{}
	l.podChanged(pod("10", "1"), false)
	l.leaseChanged(lease("11", "a"))
	if l.has(13, 12) {
		t.Error("the log has a change that was not delivered")
	}
	l.leaseChanged(lease("13", "b"))
	l.podChanged(pod("12", "2"), false)
	l.leaseChanged(lease("20", "a"))
	if !l.has(20, 12) {
		t.Error("the log does not have the changes")
	}
	for _, tc := range []struct {
		after, until     uint64
		caused, switches int
	}{{9, 11, 0, 0}, {11, 19, 1, 1}, {13, 20, 0, 1}, {9, 20, 1, 2}, {20, 20, 0, 0}} {
		if r := l.between(tc.after, tc.until); r.caused != tc.caused || len(r.switches) != tc.switches {
			t.Errorf("between %d and %d: %d of %d switches, want %d of %d: %q",
				tc.after, tc.until, r.caused, len(r.switches), tc.caused, tc.switches, r.timeline)
		}
	}
}
