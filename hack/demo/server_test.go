// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func idleServer(name string) server {
	return server{name: name, ready: true, condition: "True", idle: "true", cost: "-10"}
}

func playingServer(name string) server {
	return server{name: name, ready: true, condition: "False", idle: "false", cost: "10", message: "playing match 3"}
}

func pod(s server) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	if s.marked() {
		p.Labels = map[string]string{idleLabel: s.idle, "app": "game-server"}
		p.Annotations = map[string]string{corev1.PodDeletionCost: s.cost}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: idleCondition, Status: corev1.ConditionStatus(s.condition), Message: s.message,
		})
	}
	if s.ready {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	}
	if s.ending {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

func TestReadServer(t *testing.T) {
	ending := idleServer("a")
	ending.ending = true
	for name, want := range map[string]server{
		"idle":     idleServer("a"),
		"playing":  playingServer("a"),
		"unmarked": {name: "a", ready: true},
		"starting": {name: "a"},
		"ending":   ending,
	} {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(want, readServer(pod(want)), gocmp.AllowUnexported(server{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovable(t *testing.T) {
	notReady := idleServer("n")
	notReady.ready = false
	ending := idleServer("e")
	ending.ending = true
	two := slices.Clip([]server{playingServer("p"), playingServer("q")})
	for name, test := range map[string]struct {
		servers []server
		want    int
	}{
		"none":                             {nil, 0},
		"all play":                         {[]server{playingServer("a"), playingServer("b")}, 0},
		"one idle server, kept in reserve": {[]server{playingServer("a"), playingServer("b"), idleServer("c")}, 0},
		"two idle":                         {append(two, idleServer("a"), idleServer("b")), 1},
		"three idle":                       {append(two, idleServer("a"), idleServer("b"), idleServer("c")), 2},
		"one plays":                        {[]server{playingServer("a"), idleServer("b"), idleServer("c")}, 0},
		"all idle":                         {[]server{idleServer("a"), idleServer("b"), idleServer("c")}, 0},
		"one is not marked":                {append(two, idleServer("a"), idleServer("b"), server{name: "c", ready: true}), 0},
		"one is not ready":                 {append(two, idleServer("a"), idleServer("b"), notReady), 0},
		"one is terminating":               {append(two, idleServer("a"), idleServer("b"), ending), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := removable(test.servers); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	before := map[string]server{"i": idleServer("i"), "p": playingServer("p")}
	for name, test := range map[string]struct {
		gone []server
		want verdict
	}{
		"idle":               {[]server{idleServer("i")}, verdict{idle: []string{"i"}}},
		"playing":            {[]server{playingServer("p")}, verdict{playing: []string{"p"}}},
		"became idle":        {[]server{idleServer("p")}, verdict{idle: []string{"p"}}},
		"match began":        {[]server{playingServer("i")}, verdict{begun: []string{"i"}}},
		"unknown, playing":   {[]server{playingServer("x")}, verdict{playing: []string{"x"}}},
		"one of either kind": {[]server{idleServer("i"), playingServer("p")}, verdict{idle: []string{"i"}, playing: []string{"p"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(test.want, classify(before, test.gone), gocmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBoard checks that the board keeps the last marks of terminating pods, and reports only
// marks that changed.
func TestBoard(t *testing.T) {
	var reported []string
	b := newBoard(func(s server) { reported = append(reported, s.name+" "+s.does()) })
	old := idleServer("old")
	old.ending = true
	b.see(pod(old))
	b.see(pod(server{name: "a", ready: true}))
	b.see(pod(idleServer("a")))
	b.see(pod(idleServer("a")))
	b.see(pod(playingServer("a")))
	b.see(pod(playingServer("b")))
	ending := playingServer("a")
	ending.ending = true
	b.see(pod(ending))
	b.lose(pod(ending))
	b.lose(pod(old))
	b.mute()
	b.see(pod(idleServer("b")))

	live, gone := b.now()
	allow := gocmp.AllowUnexported(server{})
	if diff := gocmp.Diff(map[string]server{"b": idleServer("b")}, live, allow); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[string]server{"a": ending}, gone, allow); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"a idle", "a playing", "b playing"}, reported); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if got := b.seen(); got != 3 {
		t.Errorf("%d changes, want 3", got)
	}
}

func TestIdleBefore(t *testing.T) {
	before := map[string]server{"a": idleServer("a"), "b": playingServer("b")}
	for name, test := range map[string]struct {
		gone []string
		want bool
	}{
		"none":             {nil, true},
		"an idle one":      {[]string{"a"}, true},
		"also playing one": {[]string{"a", "b"}, false},
		"an unknown one":   {[]string{"c"}, false},
	} {
		gone := map[string]server{}
		for _, name := range test.gone {
			gone[name] = idleServer(name)
		}
		if got := idleBefore(before, gone); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestPlaying(t *testing.T) {
	for name, test := range map[string]struct {
		servers map[string]server
		want    bool
	}{
		"none":        {nil, false},
		"idle":        {map[string]server{"a": idleServer("a")}, false},
		"unmarked":    {map[string]server{"a": {name: "a"}}, false},
		"one of both": {map[string]server{"a": idleServer("a"), "b": playingServer("b")}, true},
	} {
		if got := playing(test.servers); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
