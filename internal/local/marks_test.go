// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/mark"
)

func TestPut(t *testing.T) {
	at := metav1.NewTime(time.Unix(1, 0))
	condition := func(conditionType string, status corev1.ConditionStatus) mark.Condition {
		return mark.Condition{Type: conditionType, Status: status, Message: "m", LastProbeTime: at, LastTransitionTime: at}
	}
	type on struct {
		Labels, Annotations map[string]string
		Conditions          []corev1.PodCondition
	}
	written := func(conditionType corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: conditionType, Status: status, Message: "m", LastProbeTime: at, LastTransitionTime: at}
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	for name, test := range map[string]struct {
		before         on
		owned, desired mark.Marks
		want           on
	}{
		"what is new is set": {
			before:  on{Labels: map[string]string{"app": "x"}, Conditions: []corev1.PodCondition{ready}},
			desired: mark.Marks{Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "2"}, Conditions: map[string]mark.Condition{"c": condition("c", "True")}},
			want: on{
				Labels: map[string]string{"app": "x", "a": "1"}, Annotations: map[string]string{"b": "2"},
				Conditions: []corev1.PodCondition{ready, written("c", "True")},
			},
		},
		"what is no longer desired comes off, and nothing else": {
			before: on{
				Labels: map[string]string{"app": "x", "a": "1"}, Annotations: map[string]string{"b": "2", "note": "y"},
				Conditions: []corev1.PodCondition{written("c", "True"), ready},
			},
			owned: mark.Marks{Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "2"}, Conditions: map[string]mark.Condition{"c": condition("c", "True")}},
			want:  on{Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"note": "y"}, Conditions: []corev1.PodCondition{ready}},
		},
		"a condition keeps its place": {
			before:  on{Conditions: []corev1.PodCondition{written("c", "True"), ready}},
			owned:   mark.Marks{Conditions: map[string]mark.Condition{"c": condition("c", "True")}},
			desired: mark.Marks{Conditions: map[string]mark.Condition{"c": condition("c", "False")}},
			want: on{
				Labels: map[string]string{}, Annotations: map[string]string{},
				Conditions: []corev1.PodCondition{written("c", "False"), ready},
			},
		},
		"a key that somebody else has set is taken, and gone with the mark": {
			before: on{Labels: map[string]string{"app": "marked"}},
			owned:  mark.Marks{Labels: map[string]string{"app": "marked"}},
			want:   on{Labels: map[string]string{}, Annotations: map[string]string{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Labels, pod.Annotations, pod.Status.Conditions = test.before.Labels, test.before.Annotations, test.before.Conditions
			put(pod, test.owned, test.desired)
			got := on{pod.Labels, pod.Annotations, pod.Status.Conditions}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxLineBytes)
	for name, test := range map[string]struct {
		writes []string
		want   []string
	}{
		"one write, many lines":  {[]string{"a\nb\n\nc\n"}, []string{"a", "b", "", "c"}},
		"one line, many writes":  {[]string{"a", "b", "c\n"}, []string{"abc"}},
		"no end":                 {[]string{"a\nb"}, []string{"a", "b"}},
		"carriage return":        {[]string{"a\r\n"}, []string{"a"}},
		"no text":                {[]string{"a\xffb\n"}, []string{"a\uFFFDb"}},
		"a long line is cut":     {[]string{long, "yz\n", "next\n"}, []string{long, "next"}},
		"nothing":                {nil, nil},
		"an end without a start": {[]string{"\n"}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loop{Runner: &Runner{mail: newMailbox()}, lines: make(chan struct{}, maxLinesAhead)}
			p := newPod(&corev1.Pod{}, "node", lifecycle.CrashLoop{})
			w := l.newLines(p, "main", "stdout")
			for _, text := range test.writes {
				if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
					t.Fatalf("wrote %d: %v", n, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for _, job := range l.mail.take() {
				job(l, time.Unix(0, 0))
			}
			var got []string
			for _, change := range p.logs.all() {
				got = append(got, change.Log.Text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogsKeepTheLast(t *testing.T) {
	var ring logRing
	for i := range maxLogs + 3 {
		ring.add(Change{Log: &LogLine{Text: fmt.Sprint(i)}})
	}
	all := ring.all()
	if len(all) != maxLogs || all[0].Log.Text != "3" || all[maxLogs-1].Log.Text != fmt.Sprint(maxLogs+2) {
		t.Errorf("%d lines from %s to %s", len(all), all[0].Log.Text, all[len(all)-1].Log.Text)
	}
}
