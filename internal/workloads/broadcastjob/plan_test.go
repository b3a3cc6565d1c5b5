// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package broadcastjob_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// noon returns when the jobs of the tests begin.
func noon() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }

func newJob() *v1alpha1.BroadcastJob {
	return &v1alpha1.BroadcastJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "report", UID: "uid", Generation: 1},
		Spec: v1alpha1.BroadcastJobSpec{
			CompletionPolicy: v1alpha1.BroadcastJobCompletionPolicy{Type: v1alpha1.BroadcastJobAlways},
			FailurePolicy:    v1alpha1.BroadcastJobFailurePolicy{Type: v1alpha1.BroadcastJobFailFast},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "report"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "report:1"}}},
			},
		},
		Status: v1alpha1.BroadcastJobStatus{StartTime: new(metav1.NewTime(noon())), Phase: v1alpha1.BroadcastJobRunning},
	}
}

func newNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

func notReady(node *corev1.Node, status corev1.ConditionStatus, since time.Time) {
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)}}
}

// newNodes returns nodes, whose names may have a mark: ! not reported since noon, ? for five minutes before, ~ reported as
// not ready for as long, * NoSchedule, # NoExecute, - being deleted.
func newNodes(names string) []*corev1.Node {
	var nodes []*corev1.Node
	for name := range strings.FieldsSeq(names) {
		node := newNode(strings.TrimRight(name, "!?~*#-"))
		switch name[len(name)-1] {
		case '!':
			notReady(node, corev1.ConditionUnknown, noon())
		case '?':
			notReady(node, corev1.ConditionUnknown, noon().Add(-5*time.Minute))
		case '~':
			notReady(node, corev1.ConditionFalse, noon().Add(-5*time.Minute))
		case '*':
			node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		case '#':
			node.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
		case '-':
			node.DeletionTimestamp = new(metav1.NewTime(noon()))
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// newPods returns pods as the cache has them, as node=state.
func newPods(t *testing.T, job *v1alpha1.BroadcastJob, states string) []*corev1.Pod {
	t.Helper()
	kept := trim.PodWithBroadcasts(trim.Pod(nil))
	var pods []*corev1.Pod
	for each := range strings.FieldsSeq(states) {
		node, state, _ := strings.Cut(each, "=")
		pod := broadcastjob.Pod(job, node)
		pod.UID, pod.Status.Phase = types.UID(node), corev1.PodRunning
		if state != "waits" {
			pod.Spec.NodeName = node
		}
		switch state {
		case "waits":
			pod.Status.Phase = corev1.PodPending
		case "runs":
		case "bound":
			pod.Status.Phase = corev1.PodPending
		case "stranded":
			pod.Status.Phase, pod.DeletionTimestamp = corev1.PodPending, new(metav1.NewTime(noon()))
		case "succeeded":
			pod.Status.Phase = corev1.PodSucceeded
		case "failed":
			pod.Status.Phase = corev1.PodFailed
		case "goes":
			pod.DeletionTimestamp = new(metav1.NewTime(noon()))
		case "busy":
			pod.Labels = map[string]string{builders.GuardLabel: "delete"}
		case "restarted", "stopped", "restarted-busy":
			if state == "restarted-busy" {
				pod.Labels = map[string]string{builders.GuardLabel: "delete"}
			}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}}
			if state == "stopped" {
				pod.Spec.ActiveDeadlineSeconds = new(int64(1))
			}
		default:
			t.Fatalf("state %q", state)
		}
		pods = append(pods, kept(kept(pod))) // Informers may trim an object twice.
	}
	return pods
}

// summary says in one line what a plan does: +node, -node, !node, the phase, the numbers of nodes, and when it plans again.
func summary(plan *broadcastjob.Plan) string {
	var words []string
	for _, pod := range plan.Creates {
		words = append(words, "+"+nodefit.Target(pod))
	}
	for _, each := range plan.Deletes {
		words = append(words, "-"+nodefit.Target(each.Pod))
	}
	for _, each := range plan.Patches {
		words = append(words, "!"+nodefit.Target(each.Pod))
	}
	slices.Sort(words) // Pods have the order of their names.
	s := &plan.Status
	words = append(words, fmt.Sprintf("%s %d=%d+%d+%d", s.Phase, s.Desired, s.Active, s.Succeeded, s.Failed))
	for _, kind := range []string{v1alpha1.BroadcastJobComplete, v1alpha1.BroadcastJobFailed, v1alpha1.BroadcastJobPodsCreated, planning.PodsGuarded} {
		if condition := meta.FindStatusCondition(s.Conditions, kind); condition != nil {
			words = append(words, fmt.Sprintf("%s:%s:%s", kind, condition.Status[:1], condition.Reason))
		}
	}
	if plan.Remove {
		words = append(words, "remove")
	}
	if !plan.Next.IsZero() {
		words = append(words, plan.Next.Sub(noon()).String())
	}
	return strings.Join(words, " ")
}

// test is a plan.
type test struct {
	change      func(*v1alpha1.BroadcastJob)
	nodes, pods string
	left        int
	taken       string
	after       time.Duration
	want        string
}

func parallel(value string) func(*v1alpha1.BroadcastJob) {
	return func(j *v1alpha1.BroadcastJob) { j.Spec.Parallelism = new(intstr.Parse(value)) }
}

func failing(kind v1alpha1.BroadcastJobFailureType, parallelism string) func(*v1alpha1.BroadcastJob) {
	return func(j *v1alpha1.BroadcastJob) {
		j.Spec.FailurePolicy.Type, j.Spec.Parallelism = kind, new(intstr.Parse(parallelism))
	}
}

func run(t *testing.T, tests map[string]test) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := newJob()
			if test.change != nil {
				test.change(job)
			}
			in := broadcastjob.Input{Guards: builders.Guards(), Job: job, Nodes: newNodes(test.nodes), Pods: newPods(t, job, test.pods), Left: test.left, Now: noon().Add(test.after)}
			if test.taken != "" {
				in.Taken = map[string]bool{broadcastjob.Name(job.Name, test.taken): true}
			}
			before := job.DeepCopy()
			plan := broadcastjob.New(in)
			expect.Equal(t, "plan", test.want, summary(&plan))
			expect.Equal(t, "the plan changed the job", before, job)
		})
	}
}

func TestNodes(t *testing.T) {
	run(t, map[string]test{
		"all at once":             {nodes: "b a c", want: "+a +b +c running 3=0+0+0 Complete:F:Running"},
		"no node":                 {want: "running 0=0+0+0 Complete:F:NoNodes"},
		"ready nodes first":       {change: parallel("2"), nodes: "a! b c", want: "+b +c running 3=0+0+0 Complete:F:Running 5m0s"},
		"a name of others last":   {change: parallel("1"), nodes: "a b!", taken: "a", want: "+b running 2=0+0+0 Complete:F:Running 5m0s"},
		"taints":                  {nodes: "a b* c# d-", want: "+a running 1=0+0+0 Complete:F:Running"},
		"taints of running pods":  {nodes: "a* b# c- d", pods: "a=runs b=runs c=runs d=runs", want: "-b running 3=3+0+0 Complete:F:Running"},
		"taints of ended pods":    {nodes: "a# b", pods: "a=succeeded b=runs", want: "running 2=1+1+0 Complete:F:Running"},
		"nodes that are gone":     {nodes: "a", pods: "a=waits b=runs c=failed d=waits", want: "-b -d running 1=1+0+0 Complete:F:Running"},
		"a node that joins":       {nodes: "a b", pods: "a=runs", want: "+b running 2=1+0+0 Complete:F:Running"},
		"a pod that goes":         {nodes: "a", pods: "a=goes", want: "running 1=0+0+0 Complete:F:Running"},
		"a pod that goes, misfit": {nodes: "a#", pods: "a=goes", want: "running 0=0+0+0 Complete:F:NoNodes"},
		"node name": {
			change: func(j *v1alpha1.BroadcastJob) { j.Spec.Template.Spec.NodeName = "b" }, nodes: "a b",
			want: "+b running 1=0+0+0 Complete:F:Running",
		},
		"toleration": {
			change: func(j *v1alpha1.BroadcastJob) {
				j.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			},
			nodes: "a* b#", want: "+a +b running 2=0+0+0 Complete:F:Running",
		},
		"invalid affinity": {
			change: func(j *v1alpha1.BroadcastJob) {
				j.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "Near"}}}},
				}}}
			},
			nodes: "a", want: "running 0=0+0+0 PodsCreated:F:InvalidTemplate",
		},
	})
}

// TestAbsentNodes lets jobs go on without nodes that are not ready for five minutes.
func TestAbsentNodes(t *testing.T) {
	tolerant := func(j *v1alpha1.BroadcastJob) {
		j.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}}
	}
	ended := func(j *v1alpha1.BroadcastJob) {
		j.Status.Phase, j.Status.CompletionTime = v1alpha1.BroadcastJobCompleted, new(metav1.NewTime(noon()))
	}
	run(t, map[string]test{
		"not for five minutes":       {nodes: "a b!", pods: "a=succeeded b=bound", after: 299 * time.Second, want: "running 2=1+1+0 Complete:F:Running 5m0s"},
		"for five minutes":           {nodes: "a b!", pods: "a=succeeded b=bound", after: 300 * time.Second, want: "-b completed 1=0+1+0 Complete:T:Completed 5m0s"},
		"without a pod":              {nodes: "a b?", pods: "a=succeeded", want: "completed 1=0+1+0 Complete:T:Completed 0s"},
		"its pod goes":               {nodes: "a b?", pods: "a=succeeded b=stranded", want: "completed 1=0+1+0 Complete:T:Completed 0s"},
		"its pod runs":               {nodes: "a b?", pods: "a=succeeded b=runs", want: "running 2=1+1+0 Complete:F:Running"},
		"its pod runs and goes":      {nodes: "a b?", pods: "a=succeeded b=goes", want: "running 2=0+1+0 Complete:F:Running"},
		"its pod succeeded":          {nodes: "a b?", pods: "a=succeeded b=succeeded", want: "completed 2=0+2+0 Complete:T:Completed 0s"},
		"its pod failed":             {change: failing("Continue", "9"), nodes: "a b?", pods: "a=succeeded b=failed", want: "completed 2=0+1+1 Complete:T:PodsFailed 0s"},
		"it gets no pod":             {nodes: "a b?", want: "+a running 1=0+0+0 Complete:F:Running"},
		"all nodes":                  {nodes: "a? b~", want: "running 0=0+0+0 Complete:F:NoNodes"},
		"reported":                   {nodes: "a b~", pods: "a=succeeded b=bound", want: "-b completed 1=0+1+0 Complete:T:Completed 0s"},
		"reported, tolerated":        {change: tolerant, nodes: "a b~", pods: "a=succeeded", want: "+b running 2=0+1+0 Complete:F:Running"},
		"not reported, tolerated":    {change: tolerant, nodes: "a b?", pods: "a=succeeded", want: "completed 1=0+1+0 Complete:T:Completed 0s"},
		"its pod holds a place":      {change: parallel("1"), nodes: "a b?", pods: "b=bound", want: "-b running 1=0+0+0 Complete:F:Running"},
		"until it goes":              {change: parallel("1"), nodes: "a b?", pods: "b=stranded", want: "+a running 1=0+0+0 Complete:F:Running"},
		"it returns":                 {nodes: "a b", pods: "a=runs b=stranded", want: "running 2=1+0+0 Complete:F:Running"},
		"it has returned":            {nodes: "a b", pods: "a=runs", want: "+b running 2=1+0+0 Complete:F:Running"},
		"it returns after the end":   {change: ended, nodes: "a b", pods: "a=succeeded", want: "completed 0=0+0+0"},
		"a deletion that was lost":   {change: ended, nodes: "a b", pods: "a=succeeded b=bound", want: "-b completed 0=0+0+0"},
		"a pod of an ended job runs": {change: ended, nodes: "a b", pods: "a=succeeded b=runs", want: "completed 0=0+0+0"},
	})
}

func TestParallelism(t *testing.T) {
	run(t, map[string]test{
		"a number":                {change: failing("Continue", "2"), nodes: "a b c", want: "+a +b running 3=0+0+0 Complete:F:Running"},
		"a percentage":            {change: failing("Continue", "50%"), nodes: "a b c", want: "+a +b running 3=0+0+0 Complete:F:Running"},
		"zero":                    {change: failing("Continue", "0"), nodes: "a", want: "running 1=0+0+0 Complete:F:Running"},
		"a place is free":         {change: failing("Continue", "2"), nodes: "a b c d", pods: "a=failed b=waits", want: "+c running 4=1+0+1 Complete:F:Running"},
		"pods that go hold it":    {change: failing("Continue", "1"), nodes: "a b", pods: "a=goes", want: "running 2=0+0+0 Complete:F:Running"},
		"misplaced pods hold it":  {change: failing("Continue", "1"), nodes: "a b#", pods: "b=runs", want: "-b running 1=0+0+0 Complete:F:Running"},
		"lowered":                 {change: failing("Continue", "1"), nodes: "a b c", pods: "a=runs b=runs", want: "running 3=2+0+0 Complete:F:Running"},
		"steps":                   {change: parallel("2"), nodes: "a b c d", pods: "a=succeeded b=runs", want: "running 4=1+1+0 Complete:F:Running"},
		"the next step":           {change: parallel("2"), nodes: "a b c d", pods: "a=succeeded b=succeeded", want: "+c +d running 4=0+2+0 Complete:F:Running"},
		"the rest of a step":      {change: parallel("2"), nodes: "a b c d", pods: "a=runs", left: 1, want: "+b running 4=1+0+0 Complete:F:Running"},
		"steps before a pause":    {change: failing("Pause", "2"), nodes: "a b c d", pods: "a=succeeded b=runs", want: "running 4=1+1+0 Complete:F:Running"},
		"no steps without limit":  {change: parallel("2147483647"), nodes: "a b c", pods: "a=runs b=runs", want: "+c running 3=2+0+0 Complete:F:Running"},
		"no steps below the most": {change: parallel("3"), nodes: "a b c", pods: "a=runs b=succeeded", want: "+c running 3=1+1+0 Complete:F:Running"},
	})
}

func TestEnds(t *testing.T) {
	never := func(j *v1alpha1.BroadcastJob) { j.Spec.CompletionPolicy.Type = v1alpha1.BroadcastJobNever }
	ttl := func(j *v1alpha1.BroadcastJob) { j.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(60)) }
	ended := func(phase v1alpha1.BroadcastJobPhase) func(*v1alpha1.BroadcastJob) {
		return func(j *v1alpha1.BroadcastJob) {
			ttl(j)
			j.Status.Phase, j.Status.CompletionTime = phase, new(metav1.NewTime(noon()))
		}
	}
	late := func(j *v1alpha1.BroadcastJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(60)) }
	limited := func(kind v1alpha1.BroadcastJobFailureType, limit int32) func(*v1alpha1.BroadcastJob) {
		return func(j *v1alpha1.BroadcastJob) {
			j.Spec.FailurePolicy.Type, j.Spec.FailurePolicy.RestartLimit = kind, limit
		}
	}
	paused := func(j *v1alpha1.BroadcastJob) { late(j); j.Spec.Paused = true }
	run(t, map[string]test{
		"completed":                          {change: ttl, nodes: "a b", pods: "a=succeeded b=succeeded", want: "completed 2=0+2+0 Complete:T:Completed 0s"},
		"with failures":                      {change: failing("Continue", "1"), nodes: "a b", pods: "a=failed b=succeeded", want: "completed 2=0+1+1 Complete:T:PodsFailed 0s"},
		"never":                              {change: never, nodes: "a", pods: "a=succeeded", want: "running 1=0+1+0 Complete:F:Running"},
		"ended: a node joins":                {change: ended("completed"), nodes: "a b", pods: "a=succeeded", want: "completed 0=0+0+0 1m0s"},
		"ended: time":                        {change: ended("completed"), nodes: "a", pods: "a=succeeded", after: time.Minute, want: "completed 0=0+0+0 remove"},
		"failed: a guarded pod waits":        {change: ended("failed"), nodes: "a b", pods: "a=busy b=runs", want: "-b failed 0=0+0+0 PodsGuarded:T:Guarded 1m0s"},
		"too many restarts of a guarded pod": {change: limited("Continue", 0), nodes: "a", pods: "a=restarted-busy", want: "completed 1=0+0+1 Complete:T:PodsFailed PodsGuarded:T:Guarded 0s"},
		"failed: a guarded pod keeps the job": {
			change: ended("failed"), nodes: "a", pods: "a=busy", after: time.Minute, want: "failed 0=0+0+0 PodsGuarded:T:Guarded",
		},
		"failed: pods go":                     {change: ended("failed"), nodes: "a b c d", pods: "a=runs b=failed c=goes d=succeeded", want: "-a failed 0=0+0+0 1m0s"},
		"FailFast":                            {change: ttl, nodes: "a b c d", pods: "a=failed b=runs c=goes", want: "-b failed 4=0+0+2 Complete:F:PodFailed Failed:T:PodFailed 0s"},
		"FailFast of a job that does not end": {change: never, nodes: "a b", pods: "a=failed", want: "failed 2=0+0+1 Complete:F:PodFailed Failed:T:PodFailed 0s"},
		"Pause":                               {change: failing("Pause", "9"), nodes: "a b c", pods: "a=failed b=runs", want: "paused 3=1+0+1 Complete:F:PodFailed"},
		"Pause, all ended":                    {change: failing("Pause", "9"), nodes: "a b", pods: "a=failed b=succeeded", want: "paused 2=0+1+1 Complete:F:PodFailed"},
		"deadline":                            {change: late, nodes: "a b", pods: "a=runs", after: time.Minute, want: "-a failed 2=0+0+1 Complete:F:DeadlineExceeded Failed:T:DeadlineExceeded 1m0s"},
		"before the deadline":                 {change: late, nodes: "a", pods: "a=runs", after: time.Second, want: "running 1=1+0+0 Complete:F:Running 1m0s"},
		"ended at the deadline":               {change: late, nodes: "a", pods: "a=succeeded", after: time.Minute, want: "completed 1=0+1+0 Complete:T:Completed 1m0s"},
		"paused":                              {change: paused, nodes: "a b c", pods: "a=failed b=runs", after: time.Hour, want: "paused 3=1+0+1 Complete:F:Paused"},

		"restarts":                    {change: limited("FailFast", 3), nodes: "a", pods: "a=restarted", want: "running 1=1+0+0 Complete:F:Running"},
		"too many restarts":           {change: limited("FailFast", 2), nodes: "a b", pods: "a=restarted b=runs", want: "!a -b failed 2=0+0+2 Complete:F:PodFailed Failed:T:PodFailed 0s"},
		"too many restarts, Continue": {change: limited("Continue", 0), nodes: "a b", pods: "a=restarted b=stopped", want: "!a completed 2=0+0+2 Complete:T:PodsFailed 0s"},
		"restarts of sidecars": {change: func(j *v1alpha1.BroadcastJob) {
			j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		}, nodes: "a", pods: "a=restarted", want: "running 1=1+0+0 Complete:F:Running"},
	})
}

// TestMessage checks that the nodes are named that have not succeeded.
func TestMessage(t *testing.T) {
	job := newJob()
	failing("Continue", "3")(job)
	plan := broadcastjob.New(broadcastjob.Input{Guards: builders.Guards(),
		Job: job, Nodes: newNodes("a b c d e"), Pods: newPods(t, job, "a=failed b=waits c=runs d=succeeded e=goes"), Now: noon(),
	})
	want := "1 of 5 nodes succeeded. 1 failed: a. 2 have a pod that has not ended. 1 of these wait for the scheduler: b. 1 get a pod later."
	expect.Equal(t, "message", want, meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.BroadcastJobComplete).Message)
}

// TestMessageAboutAbsentNodes checks that the nodes are named without which a job goes on.
func TestMessageAboutAbsentNodes(t *testing.T) {
	for nodes, want := range map[string]string{
		"a b?": "0 of 1 nodes succeeded. 1 get a pod later. 1 are left out, because they are not ready for 5m0s: b.",
		"b?":   "No node that fits the template is ready. 1 are left out, because they are not ready for 5m0s: b.",
	} {
		plan := broadcastjob.New(broadcastjob.Input{Guards: builders.Guards(), Job: newJob(), Nodes: newNodes(nodes), Now: noon()})
		expect.Equal(t, "message with the nodes "+nodes, want, meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.BroadcastJobComplete).Message)
	}
}

func TestPod(t *testing.T) {
	job := newJob()
	pod := broadcastjob.Pod(job, "a")
	if want := map[string]string{"app": "report", "broadcastjob-name": "report", "broadcastjob-controller-uid": "uid"}; !cmp.Equal(pod.Labels, want) {
		t.Errorf("labels %v", pod.Labels)
	}
	tolerates := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == corev1.TaintNodeUnschedulable })
	if pod.Spec.RestartPolicy != corev1.RestartPolicyOnFailure || nodefit.Target(pod) != "a" || !tolerates || !metav1.IsControlledBy(pod, job) {
		t.Errorf("pod %+v", pod)
	}
	if len(job.Spec.Template.Labels) != 1 || job.Spec.Template.Spec.Affinity != nil {
		t.Error("the pod changed the template")
	}
	if other := broadcastjob.Name("report", "b"); other == pod.Name || pod.Name != broadcastjob.Name("report", "a") {
		t.Errorf("names %s and %s", pod.Name, other)
	}
}
