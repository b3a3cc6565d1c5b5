// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package until_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"empty":                 {"", "must be a pod and a requirement"},
		"only a pod":            {"pod/a", "must be a pod and a requirement"},
		"another kind":          {"node/a condition=Ready:True", `"node/a" must be pod/NAME`},
		"no name":               {"pod/ condition=Ready:True", `the name in "pod/" must not be empty`},
		"no namespace":          {"pod//a condition=Ready:True", `the namespace in "pod//a" must not be empty`},
		"too many slashes":      {"pod/a/b/c condition=Ready:True", "must be pod/NAME"},
		"malformed glob":        {"pod/a[ condition=Ready:True", `glob "a[" is malformed`},
		"unknown subject":       {"pod/a phase=Running", `requirement "phase" must be one of condition=TYPE:STATUS`},
		"no value":              {"pod/a condition=", "must be one of"},
		"no equals sign":        {"pod/a condition", "must be one of"},
		"unknown status":        {"pod/a condition=Ready:yes", `status "yes" must be one of True, False, Unknown`},
		"bad condition type":    {"pod/a condition=a/b/c:True", `type "a/b/c"`},
		"bad label key":         {"pod/a label=a b:c", `key "a b"`},
		"bad label value":       {"pod/a label=a:b c", `value "b c"`},
		"bad annotation key":    {"pod/a annotation=:c", `key ""`},
		"absent with a value":   {"pod/a label=!a:b", "must not have a value"},
		"event without reason":  {"pod/a event=:text", "reason must not be empty"},
		"restarts not a number": {"pod/a restarts=two", `"two" must be an integer`},
		"negative restarts":     {"pod/a restarts=-1", `"-1" must be an integer`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := until.Parse(test.text)
			if err == nil {
				t.Fatalf("Parse(%q) succeeded, want an error", test.text)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("Parse(%q): %q, want it to contain %q", test.text, err, test.want)
			}
			if !strings.HasPrefix(err.Error(), `"`+test.text+`"`) {
				t.Errorf("Parse(%q): %q does not begin with the expression", test.text, err)
			}
		})
	}
}

func change(pod string, change local.Change) local.Change {
	change.Namespace, change.Pod = "default", pod
	return change
}

func condition(pod, kind string, status corev1.ConditionStatus) local.Change {
	return change(pod, local.Change{Kind: local.KindCondition, Condition: &corev1.PodCondition{
		Type: corev1.PodConditionType(kind), Status: status,
	}})
}

func label(pod, key, value string) local.Change {
	return change(pod, local.Change{Kind: local.KindLabel, Key: key, Value: value})
}

func annotation(pod, key, value string) local.Change {
	return change(pod, local.Change{Kind: local.KindAnnotation, Key: key, Value: value})
}

func event(pod, reason, message string) local.Change {
	return change(pod, local.Change{Kind: local.KindEvent, Event: &local.PodEvent{Reason: reason, Message: message}})
}

func restart(pod, container string, count int32) local.Change {
	return change(pod, local.Change{Kind: local.KindContainer, Container: container,
		Status: &corev1.ContainerStatus{RestartCount: count}})
}

func phase(pod string, phase corev1.PodPhase) local.Change {
	return change(pod, local.Change{Kind: local.KindPod, Phase: phase})
}

func removed(c local.Change) local.Change {
	c.Removed = true
	return c
}

func TestResult(t *testing.T) {
	for name, test := range map[string]struct {
		expression string
		changes    []local.Change
		// last is empty if the expression must be met.
		last string
	}{
		"no pod matches":                 {expression: "pod/other condition=Ready:True", last: "no pod matches"},
		"no such condition":              {expression: "pod/a condition=x:True", last: "a has no such condition"},
		"condition has another status":   {"pod/a condition=x:True", []local.Change{condition("a", "x", "False")}, `a has "False"`},
		"condition has the status":       {"pod/a condition=x:True", []local.Change{condition("a", "x", "True")}, ""},
		"condition status defaults True": {"pod/a condition=x", []local.Change{condition("a", "x", "False")}, `a has "False"`},
		"condition no longer has the status": {"pod/a condition=x:True", []local.Change{
			condition("a", "x", "True"), condition("a", "x", "Unknown"),
		}, `a has "Unknown"`},
		"condition removed": {"pod/a condition=x:False", []local.Change{
			condition("a", "x", "False"), removed(condition("a", "x", "False")),
		}, "a has no such condition"},
		"condition of another pod":  {"pod/a condition=x:True", []local.Change{condition("b", "x", "True")}, "a has no such condition"},
		"condition from the start":  {expression: "pod/a condition=PodScheduled:True"},
		"condition in another case": {"pod/a condition=podscheduled:true", []local.Change{phase("a", corev1.PodFailed)}, ""},

		"label by colon":             {"pod/a label=k:v", []local.Change{label("a", "k", "v")}, ""},
		"label by equals sign":       {"pod/a label=k=v", []local.Change{label("a", "k", "v")}, ""},
		"label has another value":    {"pod/a label=k:v", []local.Change{label("a", "k", "w")}, `a has "w"`},
		"label has empty value":      {"pod/a label=k:", []local.Change{label("a", "k", "")}, ""},
		"label has any value":        {"pod/a label=k", []local.Change{label("a", "k", "v")}, ""},
		"no such label":              {expression: "pod/a label=k", last: "a has no such label"},
		"label from the start":       {expression: "pod/a label=app:test"},
		"absent label":               {expression: "pod/a label=!k"},
		"label must be absent":       {"pod/a label=!k", []local.Change{label("a", "k", "v")}, `a has "v"`},
		"label removed":              {"pod/a label=!k", []local.Change{label("a", "k", "v"), removed(label("a", "k", "v"))}, ""},
		"label is not an annotation": {"pod/a label=k:v", []local.Change{annotation("a", "k", "v")}, "a has no such label"},

		"annotation has the value": {"pod/a annotation=example.com/k:-10", []local.Change{annotation("a", "example.com/k", "-10")}, ""},
		"value with separators":    {"pod/a annotation=k:x y=z:1", []local.Change{annotation("a", "k", "x y=z:1")}, ""},
		"no such annotation":       {expression: "pod/a annotation=k:v", last: "a has no such annotation"},

		"no events": {expression: "pod/a event=Unhealthy", last: "a has no events"},
		"another event": {
			"pod/a event=Unhealthy", []local.Change{event("a", "Started", "Container started")}, "a has no such event, last was Started: Container started",
		},
		"event occurred":  {"pod/a event=Unhealthy", []local.Change{event("a", "Unhealthy", "m"), event("a", "Started", "s")}, ""},
		"event with text": {"pod/a event=Unhealthy:Liveness probe", []local.Change{event("a", "Unhealthy", "Liveness probe failed: x")}, ""},
		"event with another text": {
			"pod/a event=Unhealthy:Liveness", []local.Change{event("a", "Unhealthy", "Readiness probe failed: x")},
			"a has no such event, last was Unhealthy: Readiness probe failed: x",
		},

		"mark of a failed pod": {"pod/a label=k:v", []local.Change{label("a", "k", "v"), phase("a", corev1.PodFailed)},
			"a has ended: its marks are those of a container that no longer runs"},
		"marked condition of a failed pod": {"pod/a condition=x:True", []local.Change{condition("a", "x", "True"), phase("a", corev1.PodFailed)},
			"a has ended: its marks are those of a container that no longer runs"},
		"standard condition of a failed pod": {
			"pod/a condition=Ready:False", []local.Change{condition("a", "Ready", "False"), phase("a", corev1.PodFailed)}, "",
		},
		"mark of a succeeded pod":      {"pod/a label=k:v", []local.Change{label("a", "k", "v"), phase("a", corev1.PodSucceeded)}, ""},
		"absent label of a failed pod": {"pod/a label=!k", []local.Change{phase("a", corev1.PodFailed)}, ""},

		"no restart":          {expression: "pod/a restarts=1", last: "a has 0 restarts"},
		"zero restarts":       {expression: "pod/a restarts=0"},
		"too few restarts":    {"pod/a restarts=3", []local.Change{restart("a", "c", 2)}, "a has 2 restarts"},
		"enough restarts":     {"pod/a restarts=3", []local.Change{restart("a", "c", 4)}, ""},
		"sum over containers": {"pod/a restarts=3", []local.Change{restart("a", "c", 1), restart("a", "d", 2)}, ""},

		"glob, one pod fails":   {"pod/* label=k:v", []local.Change{label("a", "k", "v")}, "b has no such label"},
		"glob, all pods comply": {"pod/[ab] label=k:v", []local.Change{label("a", "k", "v"), label("b", "k", "v")}, ""},
		"glob matches no pod":   {expression: "pod/?? label=app", last: "no pod matches"},
		"namespace":             {expression: "pod/default/* label=app"},
		"other namespace":       {expression: "pod/games/* label=app", last: "no pod matches"},
		"spaces":                {expression: "  pod/a   label=app:test "},
	} {
		t.Run(name, func(t *testing.T) {
			expression, err := until.Parse(test.expression)
			expect.NoError(t, err)
			watch := until.NewWatch([]until.Expression{expression}, pods())
			for _, c := range test.changes {
				watch.Observe(c)
			}
			want := []until.Result{{
				Expression: strings.TrimSpace(test.expression), Met: test.last == "", Last: test.last,
			}}
			got := watch.Results()
			got[0].Pods = 0 // TestWait of package wait is about the number.
			expect.Equal(t, "results", want, got)
			expect.Equal(t, "Met()", test.last == "", watch.Met())
		})
	}
}

func pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b"} {
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "test"}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			}},
		})
	}
	return pods
}

// All expressions must be met at the same time. An expression that was met earlier does not count.
func TestExpressionsMustBeMetAtTheSameTime(t *testing.T) {
	var expressions []until.Expression
	for _, text := range []string{"pod/a label=k:v", "pod/b event=Unhealthy"} {
		expression, err := until.Parse(text)
		expect.NoError(t, err)
		expressions = append(expressions, expression)
	}
	watch := until.NewWatch(expressions, pods())
	for i, step := range []struct {
		change local.Change
		met    bool
	}{
		{label("a", "k", "v"), false},
		{label("a", "k", "w"), false},
		{event("b", "Unhealthy", "m"), false},
		{label("a", "k", "v"), true},
		{event("b", "Started", "m"), true},
		{removed(label("a", "k", "v")), false},
	} {
		watch.Observe(step.change)
		expect.Equal(t, fmt.Sprintf("after step %d: Met()", i), step.met, watch.Met())
	}
}
