// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/test/expect"
)

func required(requirements ...corev1.NodeSelectorRequirement) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}},
	}}}
}

func TestNode(t *testing.T) {
	inZone := func(operator corev1.NodeSelectorOperator, values ...string) *corev1.Affinity {
		return required(corev1.NodeSelectorRequirement{Key: "zone", Operator: operator, Values: values})
	}
	taint := func(key string, effect corev1.TaintEffect) []corev1.Taint {
		return []corev1.Taint{{Key: key, Value: "x", Effect: effect}}
	}
	tolerates := func(key string, effect corev1.TaintEffect) corev1.PodSpec {
		return corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}}}
	}
	joining := append(taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule), taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)...)
	for name, tc := range map[string]struct {
		spec   corev1.PodSpec
		taints []corev1.Taint
		ready  corev1.NodeCondition
		want   nodefit.Fit
	}{
		"joins":              {taints: joining, ready: readyAfter(corev1.ConditionFalse, 0), want: nodefit.Keeps},
		"joins, tolerated":   {spec: tolerates("", ""), taints: joining, ready: readyAfter(corev1.ConditionFalse, 0), want: nodefit.Yes},
		"not ready any more": {taints: joining, ready: readyAfter(corev1.ConditionFalse, time.Hour), want: nodefit.Yes},
		"lost before it was ready": {
			taints: taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule), ready: readyAfter(corev1.ConditionUnknown, 40*time.Second), want: nodefit.Yes,
		},
		"no rule":                           {want: nodefit.Yes},
		"name of the node":                  {spec: corev1.PodSpec{NodeName: "a"}, want: nodefit.Yes},
		"name of another node":              {spec: corev1.PodSpec{NodeName: "b"}, want: nodefit.No},
		"node selector":                     {spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "1"}}, want: nodefit.Yes},
		"another node selector":             {spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "2"}}, want: nodefit.No},
		"affinity":                          {spec: corev1.PodSpec{Affinity: inZone(corev1.NodeSelectorOpIn, "1", "2")}, want: nodefit.Yes},
		"another affinity":                  {spec: corev1.PodSpec{Affinity: inZone(corev1.NodeSelectorOpDoesNotExist)}, want: nodefit.No},
		"selector and another affinity":     {spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "1"}, Affinity: inZone(corev1.NodeSelectorOpNotIn, "1")}, want: nodefit.No},
		"NoSchedule":                        {taints: taint("a", corev1.TaintEffectNoSchedule), want: nodefit.Keeps},
		"NoExecute":                         {taints: taint("a", corev1.TaintEffectNoExecute), want: nodefit.No},
		"both effects":                      {taints: append(taint("a", corev1.TaintEffectNoSchedule), taint("a", corev1.TaintEffectNoExecute)...), want: nodefit.No},
		"PreferNoSchedule":                  {taints: taint("a", corev1.TaintEffectPreferNoSchedule), want: nodefit.Yes},
		"tolerated NoSchedule":              {spec: tolerates("a", corev1.TaintEffectNoSchedule), taints: taint("a", corev1.TaintEffectNoSchedule), want: nodefit.Yes},
		"another tolerated effect":          {spec: tolerates("a", corev1.TaintEffectNoSchedule), taints: taint("a", corev1.TaintEffectNoExecute), want: nodefit.No},
		"cordoned":                          {taints: taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), want: nodefit.Yes},
		"not ready":                         {taints: append(taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule), taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)...), want: nodefit.Yes},
		"unreachable":                       {taints: taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), want: nodefit.Yes},
		"disk pressure":                     {taints: taint(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule), want: nodefit.Yes},
		"network unavailable":               {taints: taint(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule), want: nodefit.Keeps},
		"network unavailable, host network": {spec: corev1.PodSpec{HostNetwork: true}, taints: taint(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule), want: nodefit.Yes},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := nodefit.Compile(&tc.spec)
			expect.NoError(t, err)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"zone": "1"}}, Spec: corev1.NodeSpec{Taints: tc.taints}}
			if tc.ready.Type != "" {
				node.Status.Conditions = []corev1.NodeCondition{tc.ready}
			}
			expect.Equal(t, "fit", tc.want, template.Node(node))
			if why := template.Why(node); (why == "") != (tc.want == nodefit.Yes) {
				t.Errorf("why is %q with the fit %v", why, tc.want)
			}
		})
	}
}

func TestWhyNamesTheTaintThatMattersMost(t *testing.T) {
	template, err := nodefit.Compile(&corev1.PodSpec{})
	expect.NoError(t, err)
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		{Key: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "gpu", Value: "true", Effect: corev1.TaintEffectNoExecute},
	}}}
	expect.Equal(t, "why", "the template does not tolerate the taint gpu=true:NoExecute", template.Why(node))
}

func TestCompileNamesTheField(t *testing.T) {
	_, err := nodefit.Compile(&corev1.PodSpec{Affinity: required(corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn})})
	expect.ErrorWith(t, "Compile()", "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: null", err)
}

func TestBoundPodsHaveATarget(t *testing.T) {
	spec := corev1.PodSpec{Affinity: required(corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpExists})}
	spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1}}
	template := spec.DeepCopy()
	nodefit.Bind(&spec, "a")
	if got := nodefit.Target(&corev1.Pod{Spec: spec}); got != "a" || len(spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("target %q of %+v", got, spec.Affinity.NodeAffinity)
	}
	expect.Equal(t, "a pod that is not bound has the target", "", nodefit.Target(&corev1.Pod{Spec: *template}))
	spec.NodeName = "b"
	expect.Equal(t, "a scheduled pod has the target", "b", nodefit.Target(&corev1.Pod{Spec: spec}))
}

// readyAfter returns the condition of readiness that changed to the status at this time after the node's creation.
func readyAfter(status corev1.ConditionStatus, after time.Duration) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(time.Time{}.Add(after))}
}

func TestUnready(t *testing.T) {
	tolerant := []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}}
	for name, tc := range map[string]struct {
		conditions  []corev1.NodeCondition
		tolerations []corev1.Toleration
		want        bool
	}{
		"no condition":            {},
		"ready":                   {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionTrue, time.Hour)}},
		"reported":                {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionFalse, time.Hour)}, want: true},
		"reported, tolerated":     {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionFalse, time.Hour)}, tolerations: tolerant},
		"not reported":            {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionUnknown, time.Hour)}, want: true},
		"not reported, tolerated": {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionUnknown, time.Hour)}, tolerations: tolerant, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			fit, err := nodefit.Compile(&corev1.PodSpec{Tolerations: tc.tolerations})
			expect.NoError(t, err)
			since, got := fit.Unready(&corev1.Node{Status: corev1.NodeStatus{Conditions: tc.conditions}})
			if got != tc.want || got && !since.Equal(time.Time{}.Add(time.Hour)) {
				t.Errorf("unready is %t since %v, want %t", got, since, tc.want)
			}
		})
	}
}

func TestJoins(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		want       bool
	}{
		"no condition":            {},
		"registered":              {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionFalse, 0)}, want: true},
		"a clock that is behind":  {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionFalse, -5*time.Second)}, want: true},
		"a clock hours behind":    {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionFalse, -time.Hour)}},
		"the kubelet ended":       {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionUnknown, 5*time.Second)}},
		"ready":                   {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionTrue, time.Second)}},
		"not ready any more":      {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionFalse, 30*time.Second)}},
		"lost after it was ready": {conditions: []corev1.NodeCondition{readyAfter(corev1.ConditionUnknown, time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "joins", tc.want, nodefit.Joins(&corev1.Node{Status: corev1.NodeStatus{Conditions: tc.conditions}}))
		})
	}
}
