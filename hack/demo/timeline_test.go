// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTimeline(t *testing.T) {
	var out strings.Builder
	line, begun := &timeline{out: &out}, time.Unix(100, 0)
	line.add(begun, 0, "before the start")
	line.head(begun, "left", "right")
	line.add(begun.Add(1240*time.Millisecond), 1, "on the right")
	line.add(begun.Add(12*time.Second), 0, "on the left")
	want := "    TIME     left" + strings.Repeat(" ", columnWidth-4) + "right\n" +
		"    +1.2s    " + strings.Repeat(" ", columnWidth) + "on the right\n" +
		"    +12.0s   on the left\n"
	if diff := gocmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// databasePod returns the pod of a replica.
func databasePod(name, uid, version, container string, ready bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	p.Spec.Containers = []corev1.Container{{Image: "docker.io/seamark/example-database:" + version}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{ContainerID: container}}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	return p
}

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{}
	return p
}

func TestFollower(t *testing.T) {
	for name, test := range map[string]struct {
		steps func(f *follower)
		want  []string
		// switches is the number of switches at the end.
		switches int
	}{
		"nothing changes": {func(f *follower) {
			f.sees(databasePod("db-0", "a", "v1", "1", true))
			f.holds("db-0")
		}, nil, 0},
		"update in place": {func(f *follower) {
			f.sees(databasePod("db-0", "a", "v2", "1", true))
			f.sees(databasePod("db-0", "a", "v2", "1", false))
			f.sees(databasePod("db-0", "a", "v2", "2", false))
			f.sees(databasePod("db-0", "a", "v2", "2", true))
			f.sees(databasePod("db-0", "a", "v2", "2", true))
		}, []string{"db-0 is updated in place (primary)", "db-0 is ready, v2"}, 0},
		"replacement": {func(f *follower) {
			f.sees(terminating(databasePod("db-0", "a", "v1", "1", true)))
			f.sees(terminating(databasePod("db-0", "a", "v1", "1", false)))
			f.sees(databasePod("db-0", "b", "v2", "", false))
			f.sees(databasePod("db-0", "b", "v2", "2", true))
		}, []string{"db-0 is deleted (primary)", "db-0 is created, v2", "db-0 is ready, v2"}, 0},
		"switch": {func(f *follower) {
			f.holds("")
			f.holds("db-1")
			f.holds("db-1")
			f.holds("db-2")
		}, []string{"SWITCH 1: db-0 -> db-1", "SWITCH 2: db-1 -> db-2"}, 2},
		"the same primary after a release": {func(f *follower) {
			f.holds("")
			f.holds("db-0")
		}, nil, 0},
		"restarted count": {func(f *follower) {
			f.holds("db-1")
			f.restart()
			f.holds("db-2")
		}, []string{"SWITCH 1: db-0 -> db-1", "SWITCH 1: db-1 -> db-2"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			f := newFollower(func(text string) { got = append(got, text) })
			f.sees(databasePod("db-0", "a", "v1", "1", true))
			f.holds("db-0")
			test.steps(f)
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, switches := f.result(); switches != test.switches {
				t.Errorf("%d switches, want %d", switches, test.switches)
			}
		})
	}
}

func TestUpdated(t *testing.T) {
	f := newFollower(func(string) {})
	const image = "docker.io/seamark/example-database:v2"
	f.sees(databasePod("db-0", "a", "v2", "1", true))
	f.sees(databasePod("db-1", "b", "v1", "1", true))
	if f.updated(2, image) {
		t.Error("one of two replicas is updated: got true")
	}
	f.sees(databasePod("db-1", "b", "v2", "1", true))
	if f.updated(2, image) {
		t.Error("the container is not restarted yet: got true")
	}
	f.sees(databasePod("db-1", "b", "v2", "2", true))
	if !f.updated(2, image) {
		t.Error("both replicas are updated: got false")
	}
}

func TestConclusion(t *testing.T) {
	for name, test := range map[string]struct {
		seamark, builtin int
		// refusal is a part of the error, or empty if there is none.
		refusal string
	}{
		"one switch":      {1, 3, ""},
		"two switches":    {2, 2, "switched 2 times"},
		"no switch":       {0, 2, "switched 0 times"},
		"built-in also 1": {1, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := conclude(&out, test.seamark, test.builtin)
			if (err != nil) != (test.refusal != "") || err != nil && !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("error %v, want one with %q", err, test.refusal)
			}
			if err == nil && !strings.Contains(out.String(), "built-in") {
				t.Errorf("output %q does not show the comparison", out.String())
			}
		})
	}
}
