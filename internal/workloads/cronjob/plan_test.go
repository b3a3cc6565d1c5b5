// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
	"github.com/seamark-dev/seamark/test/expect"
)

// noon is when the objects are created.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// world is an object with its Jobs and a clock.
type world struct {
	testing.TB
	object *v1alpha1.AdvancedCronJob
	jobs   []*batchv1.Job
	now    time.Time
	// started are the scheduled times in the order of their creation, and events the reasons of all events.
	started []time.Time
	events  []string
	uid     int
}

func newWorld(tb testing.TB, schedule string) *world {
	tb.Helper()
	return &world{TB: tb, now: noon, object: &v1alpha1.AdvancedCronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "report", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.AdvancedCronJobSpec{
			Schedule: schedule, ConcurrencyPolicy: v1alpha1.AllowConcurrent, Template: v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{}},
		},
	}}
}

func (w *world) children() (jobs []cronjob.Job) {
	for _, job := range w.jobs {
		jobs = append(jobs, cronjob.OfJob(job))
	}
	return jobs
}

// step does what the plan says, and checks that a plan of the result does nothing.
func (w *world) step() cronjob.Plan {
	w.Helper()
	plan := cronjob.New(cronjob.Input{Object: w.object, Jobs: w.children(), Now: w.now})
	w.carryOut(plan)
	again := cronjob.New(cronjob.Input{Object: w.object, Jobs: w.children(), Now: w.now})
	if len(again.Delete)+len(again.Replace) > 0 || !again.Create.IsZero() || len(again.Events) > 0 {
		w.Fatalf("at %v, the plan of the result of a plan is %+v", w.now, again)
	}
	again.Status.Active = nil
	status := w.object.Status
	status.Active = nil
	if diff := cmp.Diff(status, again.Status); diff != "" {
		w.Fatalf("the status of the result differs (-before +after):\n%s", diff)
	}
	return plan
}

func (w *world) carryOut(plan cronjob.Plan) {
	for _, gone := range slices.Concat(plan.Replace, plan.Delete) {
		w.jobs = slices.DeleteFunc(w.jobs, func(job *batchv1.Job) bool { return job.UID == gone.GetUID() })
	}
	if scheduled := plan.Create; !scheduled.IsZero() {
		if slices.ContainsFunc(w.started, scheduled.Equal) {
			w.Fatalf("scheduled time %v is started again", scheduled)
		}
		w.started = append(w.started, scheduled)
		w.uid++
		w.jobs = append(w.jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: cronjob.Name(w.object, scheduled), UID: types.UID(fmt.Sprint(w.uid)), CreationTimestamp: metav1.NewTime(w.now),
			Annotations: map[string]string{v1alpha1.ScheduledAtKey: scheduled.Format(time.RFC3339)},
		}})
	}
	w.object.Status = plan.Status
	for _, event := range plan.Events {
		w.events = append(w.events, event.Reason)
	}
}

// until goes from wake-up to wake-up.
func (w *world) until(end time.Time) {
	w.Helper()
	for {
		plan := w.step()
		if plan.Next.IsZero() || !plan.Next.Before(end) {
			w.now = end
			return
		}
		if !plan.Next.After(w.now) {
			w.Fatalf("the next wake-up is at %v, and it is %v", plan.Next, w.now)
		}
		w.now = plan.Next.Add(5 * time.Millisecond)
	}
}

func (w *world) edit(change func(*v1alpha1.AdvancedCronJobSpec)) {
	w.object.Generation++
	change(&w.object.Spec)
}

func (w *world) finish(job *batchv1.Job, how batchv1.JobConditionType) {
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
	if how == batchv1.JobComplete {
		job.Status.CompletionTime = new(metav1.NewTime(w.now.Truncate(time.Second)))
	}
}

// times checks which scheduled times were started, as times of the day.
func (w *world) times(want ...string) {
	w.Helper()
	got := make([]string, 0, len(w.started))
	for _, scheduled := range w.started {
		got = append(got, scheduled.UTC().Format("15:04"))
	}
	expect.Equal(w, "started", want, got)
}

// scheduled checks the condition.
func (w *world) scheduled(status metav1.ConditionStatus, reason, message string) {
	w.Helper()
	condition := meta.FindStatusCondition(w.object.Status.Conditions, v1alpha1.AdvancedCronJobScheduled)
	if condition == nil || condition.Status != status || condition.Reason != reason || !strings.Contains(condition.Message, message) {
		w.Errorf("condition %+v, want %s, %s and %q", condition, status, reason, message)
	}
}

func TestRuns(t *testing.T) {
	w := newWorld(t, "*/15 * * * *")
	w.until(noon.Add(59 * time.Minute))
	w.step()
	w.times("12:15", "12:30", "12:45")
	w.scheduled(metav1.ConditionTrue, cronjob.ReasonScheduled, "The next run is at 2026-11-26T13:00:00Z, Etc/UTC.")
	if len(w.events) > 0 || len(w.object.Status.Active) != 3 || w.object.Status.Type != "Job" {
		t.Errorf("events %v, status %+v", w.events, w.object.Status)
	}
}

func TestSlotsOfTheStatusNeverRunAgain(t *testing.T) {
	w := newWorld(t, "* * * * *")
	for i := range 100 {
		w.until(noon.Add(time.Duration(i+1)*time.Minute + time.Second))
		w.step()
		// A history limit of 0, a TTL, or a user has deleted the Job.
		w.jobs = nil
		w.step()
	}
	if len(w.started) != 100 || len(w.events) > 0 {
		t.Errorf("%d scheduled times started, events %v", len(w.started), w.events)
	}
}

func TestOutage(t *testing.T) {
	w := newWorld(t, "* * * * *")
	w.until(noon.Add(90 * time.Second))
	w.now = noon.AddDate(1, 0, 0).Add(30 * time.Second)
	w.step()
	w.times("12:01", "12:00")
	expect.Equal(t, "events", []string{cronjob.ReasonMissedRuns}, w.events)
}

func TestDeadline(t *testing.T) {
	w := newWorld(t, "0 * * * *")
	w.object.Spec.StartingDeadlineSeconds = new(int64(0))
	w.until(noon.Add(61 * time.Minute))
	w.times("13:00")
	w.now = noon.Add(2*time.Hour + 2*time.Second)
	w.step()
	w.times("13:00")
	if !slices.Equal(w.events, []string{cronjob.ReasonMissedDeadline}) || !w.object.Status.LastScheduleTime.Time.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("events %v, status %+v", w.events, w.object.Status)
	}
}

func TestPolicies(t *testing.T) {
	for policy, test := range map[v1alpha1.ConcurrencyPolicy]struct {
		before, after []string
		jobs          int
	}{
		v1alpha1.AllowConcurrent:   {[]string{"12:01", "12:02", "12:03"}, []string{"12:01", "12:02", "12:03"}, 3},
		v1alpha1.ForbidConcurrent:  {[]string{"12:01"}, []string{"12:01", "12:03"}, 2},
		v1alpha1.ReplaceConcurrent: {[]string{"12:01", "12:02", "12:03"}, []string{"12:01", "12:02", "12:03"}, 1},
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t, "* * * * *")
			w.object.Spec.ConcurrencyPolicy = policy
			w.until(noon.Add(3*time.Minute + 10*time.Second))
			w.times(test.before...)
			w.finish(w.jobs[0], batchv1.JobComplete)
			w.step()
			w.times(test.after...)
			expect.Equal(t, "jobs", test.jobs, len(w.jobs))
			if at := w.object.Status.LastSuccessfulTime; at == nil || !at.Time.Equal(w.now.Truncate(time.Second)) {
				t.Errorf("last success at %v", at)
			}
		})
	}
}

func TestEditsRunNothingOfThePast(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.AdvancedCronJobSpec){
		"schedule":  func(s *v1alpha1.AdvancedCronJobSpec) { s.Schedule = "0 13 * * *" },
		"time zone": func(s *v1alpha1.AdvancedCronJobSpec) { s.TimeZone = new("Asia/Tokyo"); s.Schedule = "0 22 * * *" },
	} {
		w := newWorld(t, "30 14 * * *")
		w.until(noon.Add(70 * time.Minute))
		w.edit(change)
		w.until(noon.Add(3 * time.Hour))
		if len(w.started) > 0 {
			t.Errorf("%s: started %v", name, w.started)
		}
	}
	w := newWorld(t, "0 * * * *")
	w.until(noon.Add(30 * time.Minute))
	w.now = noon.Add(70 * time.Minute)
	w.edit(func(s *v1alpha1.AdvancedCronJobSpec) { s.FailedJobsHistoryLimit = new(int32(1)) })
	w.step()
	w.times("13:00") // Other edits move nothing.
}

func TestPause(t *testing.T) {
	w := newWorld(t, "*/10 * * * *")
	w.until(noon.Add(11 * time.Minute))
	w.edit(func(s *v1alpha1.AdvancedCronJobSpec) { s.Paused = new(true) })
	w.until(noon.Add(55 * time.Minute))
	w.times("12:10")
	w.scheduled(metav1.ConditionFalse, cronjob.ReasonPaused, "spec.paused is true")
	w.edit(func(s *v1alpha1.AdvancedCronJobSpec) { s.Paused = new(false) })
	w.step()
	w.times("12:10", "12:50")
}

func TestSchedulesThatDoNotRun(t *testing.T) {
	for _, test := range []struct{ schedule, zone, reason, message string }{
		{"61 * * * *", "", cronjob.ReasonInvalidSchedule, `spec.schedule: "61 * * * *": it must have five fields`},
		{"* * * * *", "Europe/Atlantis", cronjob.ReasonUnknownTimeZone, `spec.timeZone: unknown time zone "Europe/Atlantis"`},
		{"0 0 30 2 *", "", cronjob.ReasonNeverRuns, `spec.schedule: "0 0 30 2 *": no time within five years matches`},
	} {
		w := newWorld(t, test.schedule)
		if test.zone != "" {
			w.object.Spec.TimeZone = &test.zone
		}
		if plan := w.step(); !plan.Next.IsZero() {
			t.Errorf("%s: planned again at %v", test.schedule, plan.Next)
		}
		w.scheduled(metav1.ConditionFalse, test.reason, test.message)
	}
}

func TestHistory(t *testing.T) {
	w := newWorld(t, "* * * * *")
	w.object.Spec.SuccessfulJobsHistoryLimit, w.object.Spec.FailedJobsHistoryLimit = new(int32(2)), new(int32(0))
	w.until(noon.Add(6*time.Minute + time.Second))
	w.step()
	for i, job := range w.jobs {
		how := batchv1.JobComplete
		if i%2 == 1 {
			how = batchv1.JobFailed
		}
		w.finish(job, how)
	}
	w.step()
	var kept []string
	for _, job := range w.jobs {
		kept = append(kept, job.Annotations[v1alpha1.ScheduledAtKey][11:16])
	}
	expect.Equal(t, "kept", []string{"12:03", "12:05"}, kept)
}

// TestTakeOver continues an object of OpenKruise, whose status has none of Seamark's fields.
func TestTakeOver(t *testing.T) {
	for name, lastIsKnown := range map[string]bool{"with lastScheduleTime": true, "with a Job": false} {
		w := newWorld(t, "0 * * * *")
		w.until(noon.Add(62 * time.Minute))
		last := w.object.Status.LastScheduleTime
		w.object.Generation, w.object.Status = 5, v1alpha1.AdvancedCronJobStatus{}
		if lastIsKnown {
			w.object.Status.LastScheduleTime, w.jobs = last, nil
		}
		w.step()
		if len(w.started) != 1 {
			t.Errorf("%s: started %v, want one scheduled time", name, w.started)
		}
		// A scheduled time that passed while neither program ran.
		w.object.Status.Since, w.object.Status.ObservedSchedule = nil, ""
		w.now = noon.Add(2*time.Hour + time.Minute)
		w.step()
		w.times("13:00", "14:00")
	}
}

// TestForgottenRun has the status that OpenKruise stores, also when it has started a Job that is gone: the run is not repeated.
func TestForgottenRun(t *testing.T) {
	w := newWorld(t, "0 * * * *")
	w.object.Status = v1alpha1.AdvancedCronJobStatus{Type: v1alpha1.JobTemplateKind}
	w.now = noon.Add(62 * time.Minute)
	w.until(noon.Add(2*time.Hour + time.Second))
	w.step()
	w.times("14:00")
}

// TestRandom runs random schedules with a clock that stops and programs that end between writes. Each scheduled time is started
// once, or named as dropped.
func TestRandom(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		schedule := fmt.Sprintf("%d-59/%d %s * * *", r.IntN(10), 1+r.IntN(20), []string{"*", "*/2", "3,15"}[r.IntN(3)])
		w := newWorld(t, schedule)
		w.object.Spec.ConcurrencyPolicy = []v1alpha1.ConcurrencyPolicy{v1alpha1.AllowConcurrent, v1alpha1.ForbidConcurrent, v1alpha1.ReplaceConcurrent}[r.IntN(3)]
		if r.IntN(2) == 0 {
			w.object.Spec.SuccessfulJobsHistoryLimit = new(int32(r.IntN(3)))
		}
		for range 60 {
			switch r.IntN(6) {
			case 0: // The program ends after the creation, before the status.
				before := *w.object.Status.DeepCopy()
				w.carryOut(cronjob.New(cronjob.Input{Object: w.object, Jobs: w.children(), Now: w.now}))
				w.object.Status = before
			case 1:
				w.now = w.now.Add(time.Duration(r.IntN(4)) * time.Hour) // An outage.
			case 2, 3:
				if len(w.jobs) > 0 {
					w.finish(w.jobs[r.IntN(len(w.jobs))], batchv1.JobComplete)
				}
			default:
				w.until(w.now.Add(time.Duration(r.IntN(3600)) * time.Second))
			}
			w.step()
		}
		if !slices.IsSortedFunc(w.started, time.Time.Compare) {
			t.Fatalf("seed %d: the scheduled times go back: %v", seed, w.started)
		}
	}
}

func BenchmarkOutageOfAYear(b *testing.B) {
	w := newWorld(b, "* * * * *")
	w.step()
	for b.Loop() {
		cronjob.New(cronjob.Input{Object: w.object, Now: noon.AddDate(1, 0, 0)})
	}
}

// TestBroadcastJobs checks what differs for BroadcastJobs.
func TestBroadcastJobs(t *testing.T) {
	w := newWorld(t, "*/15 * * * *")
	w.object.Spec.Template = v1alpha1.CronJobTemplate{BroadcastJobTemplate: &runtime.RawExtension{}}
	w.step()
	w.scheduled(metav1.ConditionFalse, cronjob.ReasonUnsupported, "broadcastJobTemplate: the controller broadcastJob of seamark-workloads is disabled")
	w.object.Spec.ConcurrencyPolicy, w.object.Spec.FailedJobsHistoryLimit = v1alpha1.ForbidConcurrent, new(int32(0))
	w.object.Status.LastScheduleTime = new(metav1.NewTime(noon))
	job := &v1alpha1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Name: "report-1", UID: "uid"}}
	for phase, want := range map[v1alpha1.BroadcastJobPhase]string{
		"": "active", "running": "active", "paused": "active", "completed": "creates", "failed": "creates and deletes",
	} {
		job.Status.Phase, job.Status.CompletionTime = phase, nil
		if want != "active" {
			job.Status.CompletionTime = new(metav1.NewTime(noon))
		}
		plan := cronjob.New(cronjob.Input{Object: w.object, Jobs: []cronjob.Job{cronjob.OfBroadcastJob(job)}, Broadcasts: true, Now: noon.Add(time.Hour)})
		got := "active"
		if !plan.Create.IsZero() {
			got = "creates"
		}
		if len(plan.Delete) > 0 {
			got += " and deletes"
		}
		if got != want || plan.Status.Type != v1alpha1.BroadcastJobTemplateKind || (plan.Status.LastSuccessfulTime != nil) != (phase == "completed") {
			t.Errorf("phase %q: %s, status %+v", phase, got, plan.Status)
		}
		reference := corev1.ObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "BroadcastJob", Name: "report-1", UID: "uid"}
		if want == "active" && !cmp.Equal(plan.Status.Active, []corev1.ObjectReference{reference}) {
			t.Errorf("active %+v", plan.Status.Active)
		}
	}
}
