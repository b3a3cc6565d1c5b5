// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

// setup is what one probe of one pod depends on.
type setup struct {
	diagnosis.Input
	pod    *corev1.Pod
	marker *v1alpha1.PodProbeMarker
	report *seamarkv1alpha1.PodReport
	place  podview.NodeKind
	// known is whether a state is known from the marks.
	known bool
}

func (s *setup) npp() *v1alpha1.NodePodProbe { return s.Node.Plan }

// healthy returns a probe that is planned, run and reported, all for an hour.
func healthy() *setup {
	s := &setup{
		pod:    builders.Pod("ns", "game-0").Label("app", "game").Node("n1").Build(),
		marker: builders.Marker("ns", "game").Selector("app", "game").Probe(builders.Probe("idle").Condition("game.io/idle")).Build(),
		report: &seamarkv1alpha1.PodReport{Probes: []v1alpha1.ContainerProbeState{{Name: "game#idle", State: v1alpha1.ProbeFailed}}},
		place:  podview.KubeletNode,
	}
	s.pod.CreationTimestamp, s.marker.CreationTimestamp = ago(time.Hour), ago(time.Hour)
	s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(time.Hour)}},
	}}
	s.report.UID = string(s.pod.UID)
	s.Options = podview.Options{Defaults: plan.KubernetesDefaults()}
	s.Statuses, s.Now = true, now()
	s.Node.Plan = &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Generation: 3, CreationTimestamp: ago(time.Hour)},
		Spec:       plan.Node([]*corev1.Pod{s.pod}, s.compiled(), s.Options.Defaults),
		Status:     v1alpha1.NodePodProbeStatus{ObservedGeneration: 3, ProbeReports: true},
	}
	return s
}

func (s *setup) compiled() []*plan.Marker {
	compiled, err := plan.Compile(s.marker)
	if err != nil {
		panic(err)
	}
	return []*plan.Marker{compiled}
}

func (s *setup) find() (*diagnosis.Pod, plan.PlannedProbe) {
	if s.report != nil {
		s.Node.Slices = append(s.Node.Slices, &seamarkv1alpha1.ProbeReport{
			ObjectMeta: metav1.ObjectMeta{Name: "n1.0"}, NodeName: "n1", Pods: []seamarkv1alpha1.PodReport{*s.report},
		})
	}
	s.Markers = []*v1alpha1.PodProbeMarker{s.marker}
	s.Pod = podview.New(s.pod, s.compiled(), s.place, s.Node, s.Options)
	if len(s.Pod.Plan.Probes) == 0 {
		s.Pod.Plan = plan.Selected(s.pod, s.compiled(), s.Options.Defaults)
	}
	return diagnosis.New(s.Input), s.Pod.Plan.Probes[0]
}

// unreported removes the state.
func unreported(s *setup) { s.report.Probes = nil }

// unplanned removes the probe from the plan.
func unplanned(s *setup) { s.npp().Spec.PodProbes = nil }

func failed(reason v1alpha1.ProbeErrorReason, message string) func(*setup) {
	return func(s *setup) {
		s.report.Errors = []v1alpha1.ContainerProbeError{{Name: "game#idle", Reason: reason, Message: message}}
	}
}

func containerWaits(reason string, age time.Duration) func(*setup) {
	return func(s *setup) {
		unreported(s)
		s.pod.CreationTimestamp, s.marker.CreationTimestamp = ago(age), ago(age)
		s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}
	}
}

func runningFor(age time.Duration) func(*setup) {
	return func(s *setup) {
		unreported(s)
		s.pod.Status.ContainerStatuses[0].State.Running.StartedAt = ago(age)
	}
}

func editedPlan(age time.Duration) func(*setup) {
	return func(s *setup) {
		s.npp().ManagedFields = []metav1.ManagedFieldsEntry{
			{Time: new(ago(age))}, {Time: new(ago(0)), Subresource: "status"},
		}
	}
}

func behind(age time.Duration) func(*setup) {
	return all(editedPlan(age), func(s *setup) { s.npp().Generation = 4 })
}

func all(changes ...func(*setup)) func(*setup) {
	return func(s *setup) {
		for _, change := range changes {
			change(s)
		}
	}
}

func words(f *diagnosis.Finding) string {
	switch {
	case f == nil:
		return ""
	case !f.Until.IsZero():
		return fmt.Sprintf("%s until +%s: %s", f.Reason, f.Until.Sub(now()), f)
	case f.Waiting:
		return fmt.Sprintf("%s waiting: %s", f.Reason, f)
	default:
		return fmt.Sprintf("%s: %s", f.Reason, f)
	}
}

func TestProbe(t *testing.T) {
	network := func(s *setup) {
		s.marker = builders.Marker("ns", "game").Selector("app", "game").Probe(builders.Probe("idle").Handler(
			corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}})).Build()
		s.pod.Status.PodIP, s.pod.Status.ContainerStatuses = "", nil
		unplanned(s)
	}
	virtual := func(s *setup) {
		s.place, s.Options.Serverless, s.Node.Plan, s.report = podview.VirtualNode, true, nil, nil
	}
	startup := func(started bool) func(*setup) {
		return func(s *setup) {
			s.report.Probes = nil
			s.marker.Spec.Probes[0].StartupPolicy = v1alpha1.StartupWait
			s.pod.Spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"a"}}}}
			s.pod.Status.ContainerStatuses[0].Started = &started
		}
	}
	noReports := func(s *setup) { s.ReportsUnread, s.report = true, nil }
	unconditional := func(s *setup) { s.marker.Spec.Probes[0].PodConditionType = "" }
	for name, test := range map[string]struct {
		change func(*setup)
		want   string
	}{
		"reported":        {func(*setup) {}, ""},
		"known from mark": {all(unreported, func(s *setup) { s.known = true }), ""},

		"startup probe has not succeeded": {startup(false), `ContainerNotStartedUp waiting: the startup probe of container "main" has not succeeded`},
		"startup probe cannot be run": {
			all(startup(false), failed(v1alpha1.ProbeCannotRun, "startup probe: no such file")), "CannotRun: cannot be run: startup probe: no such file",
		},
		"startup probe has succeeded": {startup(true), "NoResult: no state has been reported, although one is due"},
		"startup, statuses unknown":   {all(startup(false), func(s *setup) { s.Statuses = false }), "NoResult waiting: no threshold has been reached yet"},

		"pod not bound": {func(s *setup) { s.pod.Spec.NodeName = "" }, "PodNotBound: pod is not bound to a node"},
		"pod not initialized": {
			func(s *setup) { s.pod.Status.Conditions, s.pod.Status.ContainerStatuses = nil, nil }, "PodNotInitialized: pod is not initialized",
		},
		"pod terminating": {func(s *setup) { s.pod.DeletionTimestamp = new(ago(0)) }, "PodEnding: pod is terminating"},
		"pod ended":       {func(s *setup) { s.pod.Status.Phase = corev1.PodFailed }, "PodEnding: pod has ended: its phase is Failed"},

		"no plan": {func(s *setup) { s.Node.Plan = nil }, "NoPlan: node n1 has no NodePodProbe"},
		"no plan of new pod": {
			func(s *setup) { s.Node.Plan, s.pod.CreationTimestamp = nil, ago(time.Second) }, "NoPlan until +29s: node n1 has no NodePodProbe",
		},
		"no plan, no clock": {
			func(s *setup) { s.Node.Plan, s.pod.CreationTimestamp, s.Now = nil, ago(time.Second), time.Time{} }, "NoPlan: node n1 has no NodePodProbe",
		},
		"plan unread": {func(s *setup) { s.Node.Plan, s.PlanUnread = nil, true }, ""},
		"not planned": {unplanned, "NotPlanned: the node's plan does not have the probe"},
		"not planned, marker edited": {all(unplanned, func(s *setup) { s.marker.CreationTimestamp = ago(30*time.Second - time.Nanosecond) }),
			"NotPlanned until +1ns: the node's plan does not have the probe"},
		"another pod of the name": {func(s *setup) { s.npp().Spec.PodProbes[0].UID = "old" }, "NotPlanned: the node's plan does not have the probe"},
		"an earlier marker":       {func(s *setup) { s.marker.UID = "other" }, "NotPlanned: the node's plan does not have the probe"},
		"no address":              {network, "NoAddress: pod has a network probe and no IP address, so it is not in the node's plan yet"},
		"error without plan":      {all(unplanned, failed(v1alpha1.ProbeCannotRun, "no")), "NotPlanned: the node's plan does not have the probe"},
		"plan outdated": {func(s *setup) { s.Want = s.npp().Spec.PodProbes[0].DeepCopy(); s.Want.IP = "10.0.0.1" },
			"PlanOutdated: the node's plan has an earlier version of the pod's probes"},

		"agent behind": {behind(time.Minute), "PlanNotRunning: the node's agent runs generation 3 of the plan, which has generation 4 now"},
		"agent behind a ProbePlan": {all(behind(10*time.Second), func(s *setup) {
			npp := s.npp()
			slice := &seamarkv1alpha1.ProbePlan{NodeName: npp.Name, Pods: npp.Spec.PodProbes}
			slice.Name, slice.Generation = seamarkv1alpha1.SliceName(npp.Name, 0), 1
			npp.Annotations, npp.Spec.PodProbes = map[string]string{v1alpha1.ProbePlansAnnotationKey: "1"}, nil
			s.Node.Plan = slicing.Assemble(npp, []*seamarkv1alpha1.ProbePlan{slice})
		}), "PlanNotRunning until +20s: the node's agent runs generation 3 of the plan, which has generation 5 now"},
		"agent behind for 10s": {
			behind(10 * time.Second), "PlanNotRunning until +20s: the node's agent runs generation 3 of the plan, which has generation 4 now",
		},
		"no agent": {
			func(s *setup) { s.npp().Status = v1alpha1.NodePodProbeStatus{} }, "PlanNotRunning: no agent has reported that it runs the node's plan",
		},
		"agent of OpenKruise": {all(behind(time.Minute), inStatus(0)), ""},
		"agent of earlier Seamark": {
			all(behind(time.Minute), inStatus(3)), "PlanNotRunning: the node's agent runs generation 3 of the plan, which has generation 4 now",
		},

		"cannot be run": {failed(v1alpha1.ProbeCannotRun, "no such file"), "CannotRun: cannot be run: no such file"},
		"waits for a slot": {
			failed(v1alpha1.ProbeWaitingForSlot, ""),
			"WaitingForSlot: waits for a slot of the node: too many probes of the pod, the namespace or the node are running",
		},
		"slowed":              {failed(v1alpha1.ProbeRateLimited, "the rate"), "RateLimited: is slowed down: the rate"},
		"not ended":           {failed(v1alpha1.ProbeNotEnded, "pid 1"), "NotEnded: the runtime has not ended an earlier run: pid 1"},
		"unknown reason":      {failed("a b", "no slot"), "CannotRun: cannot be run: no slot"},
		"error, agent behind": {all(failed(v1alpha1.ProbeCannotRun, "no"), behind(time.Hour)), "CannotRun: cannot be run: no"},
		"error that is not in force": {all(failed(v1alpha1.ProbeCannotRun, "old"), func(s *setup) {
			newer := s.report.DeepCopy()
			newer.Errors, newer.Probes[0].LastProbeTime = nil, ago(0)
			s.Node.Slices = []*seamarkv1alpha1.ProbeReport{{ObjectMeta: metav1.ObjectMeta{Name: "n1.1"}, Pods: []seamarkv1alpha1.PodReport{*newer}}}
		}), ""},

		"reports unread": {all(unreported, noReports), ""},
		"reports unread, the marker has the error": {all(noReports, func(s *setup) {
			s.marker.Status.PodErrors = []v1alpha1.PodError{
				{Pod: "other", Probe: "idle", Reason: v1alpha1.ProbeNotEnded},
				{Pod: s.pod.Name, Probe: "idle", Reason: v1alpha1.ProbeCannotRun, Message: "no such file"},
			}
			s.marker.Status.ObservedGeneration = s.marker.Generation
		}), "CannotRun: cannot be run: no such file"},
		"the marker has an error of before": {func(s *setup) {
			s.marker.Status.PodErrors = []v1alpha1.PodError{{Pod: s.pod.Name, Probe: "idle", Reason: v1alpha1.ProbeCannotRun}}
			s.marker.Status.ObservedGeneration = s.marker.Generation
		}, ""},
		"reports unread, no condition": {all(noReports, unconditional), "StateNotVisible: only the report has the state, and the report could not be read"},
		"state of an earlier marker": {
			func(s *setup) { s.report.Probes[0].Plan = "00000000" }, "EarlierMarker: the reported state is that of an earlier marker with the same name",
		},
		"state of the marker until now": {
			all(
				editedPlan(0), func(s *setup) { s.report.Probes[0].Plan = "00000000" },
			), "EarlierMarker until +30s: the reported state is that of an earlier marker with the same name",
		},
		"virtual node": {virtual, "NotProvided waiting: the provider has not set the condition game.io/idle"},

		"container creating": {
			containerWaits("ContainerCreating", time.Minute), `ContainerNotStarted until +1m0s: container "main" has not started: ContainerCreating`,
		},
		"container created late":  {containerWaits("ContainerCreating", time.Hour), `ContainerNotStarted: container "main" has not started: ContainerCreating`},
		"container without image": {containerWaits("ErrImagePull", time.Minute), `ContainerNotStarted: container "main" has not started: ErrImagePull`},
		"no status": {
			all(unreported, func(s *setup) { s.pod.Status.ContainerStatuses = nil }), `ContainerNotStarted: container "main" has not started`,
		},

		"initial delay": {all(runningFor(20*time.Second), func(s *setup) { s.marker.Spec.Probes[0].Probe.InitialDelaySeconds = 60 }),
			"NoResult until +1m41s: no threshold has been reached yet"},
		// The longer threshold is three failures in 30 s, plus a timeout of 1 s.
		"no threshold":         {runningFor(20 * time.Second), "NoResult until +41s: no threshold has been reached yet"},
		"overdue":              {runningFor(61 * time.Second), "NoResult: no state has been reported, although one is due"},
		"overdue, plan edited": {all(runningFor(time.Hour), editedPlan(time.Minute)), "NoResult until +1s: no threshold has been reached yet"},
		"overdue, trimmed pod": {
			all(unreported, editedPlan(3*time.Minute), func(s *setup) { s.Statuses = false }), "NoResult until +1s: no threshold has been reached yet",
		},
		"overdue, no clock": {
			all(unreported, func(s *setup) { s.Now = time.Time{} }), "NoResult waiting: no threshold has been reached yet",
		},
		"reported without states, not planned": {all(unreported, unplanned), "NotPlanned: the node's plan does not have the probe"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			test.change(s)
			findings, probe := s.find()
			_, reported := s.Pod.Report.State(probe)
			expect.Equal(t, "finding", test.want, words(findings.Probe(probe, s.known || reported)))
		})
	}
}

func inStatus(generation int64) func(*setup) {
	return func(s *setup) {
		s.npp().Status = v1alpha1.NodePodProbeStatus{ObservedGeneration: generation, PodProbeStatuses: []v1alpha1.PodProbeStatus{{
			UID: s.report.UID, ProbeStates: s.report.Probes,
		}}}
		s.report = nil
	}
}

// TestSteps checks that a finding about the plan does not hide one about the report, and the other way
// round, from a reader of both.
func TestSteps(t *testing.T) {
	s := healthy()
	all(behind(time.Minute), failed(v1alpha1.ProbeCannotRun, "no"))(s)
	findings, probe := s.find()
	got := []string{words(findings.Plan(probe)), words(findings.Report(probe))}
	want := []string{"PlanNotRunning: the node's agent runs generation 3 of the plan, which has generation 4 now", "CannotRun: cannot be run: no"}
	expect.Equal(t, "findings", want, got)
}

func TestSentences(t *testing.T) {
	for name, test := range map[string]struct {
		problem plan.Problem
		want    string
	}{
		"container": {plan.Problem{Reason: plan.ContainerNotFound, Container: "web"}, `Probe "p": container "web" not found`},
		"port":      {plan.Problem{Reason: plan.PortNotFound, Container: "web", Port: "http"}, `Probe "p": container "web" has no port "http"`},
		"timeout":   {plan.Problem{Reason: plan.TimeoutTooLong}, `Probe "p": timeoutSeconds must be at most 300`},
		"handler":   {plan.Problem{Reason: plan.HandlerInvalid}, `Probe "p": exactly one handler is required`},
		"plan full": {
			plan.Problem{Reason: plan.PodPlanFull}, `Probe "p": the probes of the pod take more than 64 KiB, and those that come first leave no room`,
		},
		"no type": {plan.Problem{Reason: serverless.ConditionTypeMissing}, `Probe "p": podConditionType is required for pods on virtual nodes`},
		"type taken": {
			plan.Problem{Reason: serverless.ConditionTypeTaken},
			`Probe "p": podConditionType must be unique for pods on virtual nodes, and an earlier probe has the same`,
		},
		"agent":     {plan.Problem{Reason: plan.Reason(v1alpha1.ProbeNotEnded)}, `Probe "p": the runtime has not ended an earlier run`},
		"not known": {plan.Problem{Reason: "Other"}, `Probe "p": cannot be run`},
	} {
		t.Run(name, func(t *testing.T) {
			test.problem.ID = identity.ID{Marker: "m", Probe: "p"}
			expect.Equal(t, "sentence", test.want, diagnosis.ProblemText(test.problem))
		})
	}
	conflict := mark.Conflict{Key: mark.Label("a"), Winner: identity.ID{Marker: "m", Probe: "p"}, Loser: identity.ID{Marker: "n", Probe: "q"}}
	if got, want := diagnosis.ConflictText(conflict), `Probe "q": label "a" is set by probe "p" of marker "m"`; got != want {
		t.Errorf("conflict %q, want %q", got, want)
	}
}

// Texts of containers and stored objects are limited, whatever their length and encoding.
func TestDetailIsLimited(t *testing.T) {
	long := strings.Repeat("ü", 200) + "\xff" + strings.Repeat("x", 1<<20)
	waiting := &corev1.ContainerStateWaiting{Message: long}
	for name, got := range map[string]string{
		"error":     diagnosis.OfError(v1alpha1.ContainerProbeError{Reason: "\xff" + v1alpha1.ProbeErrorReason(long), Message: long}).Detail,
		"invalid":   diagnosis.OfError(v1alpha1.ContainerProbeError{Message: "\xff\xfe"}).Detail,
		"container": diagnosis.WaitingReason(waiting),
	} {
		if len(got) > 256 || !utf8.ValidString(got) || got == "" {
			t.Errorf("%s: %d bytes, valid %t: %q", name, len(got), utf8.ValidString(got), got)
		}
	}
}

func TestLeader(t *testing.T) {
	lease := func(holder *string, age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: holder, RenewTime: &metav1.MicroTime{Time: now().Add(-age)}}}
	}
	for name, test := range map[string]struct {
		lease *coordinationv1.Lease
		want  string
	}{
		"no lease":       {nil, " false"},
		"never renewed":  {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("m")}}, "m false"},
		"leads":          {lease(new("m"), time.Second), "m true"},
		"released":       {lease(nil, time.Second), " false"},
		"clocks differ":  {lease(new("m"), 45*time.Second), "m true"},
		"does not renew": {lease(new("m"), 46*time.Second), "m false"},
	} {
		holder, _, leads := diagnosis.Leader(test.lease, now())
		expect.Equal(t, name, test.want, fmt.Sprintf("%s %t", holder, leads))
	}
}
