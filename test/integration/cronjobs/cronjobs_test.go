// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cronjobs_test tests AdvancedCronJobs with a real API server. The tests play the Job controller.
package cronjobs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

func TestCronJobs(t *testing.T) {
	start(t, server)
	for name, test := range map[string]func(t *testing.T){
		"jobs":          testJobs,
		"history 0":     testHistory,
		"replace":       testReplace,
		"pause":         testPause,
		"edit":          testEdit,
		"quota":         testQuota,
		"template":      testTemplate,
		"foreign job":   testForeignJob,
		"restart":       testRestart,
		"many at once":  testMany,
		"job is policy": testPolicy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// testJobs checks the Jobs and the status of an object: one Job for each second.
func testJobs(t *testing.T) {
	w := create(t, server, nil)
	w.until("four Jobs exist", func() error {
		n := len(w.jobs())
		return await.ErrorIf(n < 4, "%d Jobs", n)
	})
	w.edit(func(s *v1alpha1.AdvancedCronJobSpec) { s.Paused = new(true) })
	w.has(v1alpha1.AdvancedCronJobScheduled, metav1.ConditionFalse, "Paused")
	jobs := w.jobs()
	for i := range jobs {
		job := &jobs[i]
		owner := metav1.GetControllerOf(job)
		if owner == nil || owner.UID != w.object.UID || owner.APIVersion != "apps.kruise.io/v1alpha1" || job.Labels["app"] != "report" ||
			*job.Spec.BackoffLimit != 1 || job.Name != fmt.Sprintf("report-%d", slot(t, job).Unix()) {
			t.Errorf("Job %+v", job)
		}
		if i > 0 && !slot(t, job).Equal(slot(t, &jobs[i-1]).Add(time.Second)) {
			t.Errorf("slot %v follows %v", slot(t, job), slot(t, &jobs[i-1]))
		}
	}
	status := w.object.Status
	if status.Type != "Job" || len(status.Active) != len(jobs) || !status.LastScheduleTime.Time.Equal(slot(t, &jobs[len(jobs)-1])) {
		t.Errorf("status %+v, want %d active Jobs", status, len(jobs))
	}
	w.complete(&jobs[0])
	w.until("the Job is no longer active", func() error {
		return await.ErrorIf(len(w.object.Status.Active) != len(jobs)-1 || w.object.Status.LastSuccessfulTime == nil, "%+v", w.object.Status)
	})
}

// testHistory checks that no slot is started again although its Job is deleted at once.
func testHistory(t *testing.T) {
	w := create(t, server, func(s *v1alpha1.AdvancedCronJobSpec) { s.SuccessfulJobsHistoryLimit = new(int32(0)) })
	uids, slots := sets.New[string](), sets.New[string]()
	w.until("eight slots have run", func() error {
		jobs := w.jobs()
		for i := range jobs {
			uids.Insert(string(jobs[i].UID))
			slots.Insert(jobs[i].Name)
			w.complete(&jobs[i])
		}
		return await.ErrorIf(slots.Len() < 8, "%d slots", slots.Len())
	})
	w.edit(func(s *v1alpha1.AdvancedCronJobSpec) { s.Paused = new(true) })
	w.until("all Jobs are deleted", func() error {
		jobs := w.jobs()
		for i := range jobs {
			uids.Insert(string(jobs[i].UID))
			slots.Insert(jobs[i].Name)
			w.complete(&jobs[i])
		}
		return await.ErrorIf(len(jobs) > 0, "%d Jobs", len(jobs))
	})
	if uids.Len() != slots.Len() {
		t.Errorf("%d Jobs for %d slots", uids.Len(), slots.Len())
	}
}

func atLeast(n, want int) error {
	return await.ErrorIf(n < want, "%d, want %d", n, want)
}

func testReplace(t *testing.T) {
	w := create(t, server, func(s *v1alpha1.AdvancedCronJobSpec) { s.ConcurrencyPolicy = v1alpha1.ReplaceConcurrent })
	seen := sets.New[string]()
	w.until("three slots have run", func() error {
		jobs := w.jobs()
		if len(jobs) > 2 {
			t.Fatalf("%d Jobs exist", len(jobs))
		}
		for i := range jobs {
			seen.Insert(jobs[i].Name)
		}
		return atLeast(seen.Len(), 3)
	})
}

func testPause(t *testing.T) {
	w := create(t, server, func(s *v1alpha1.AdvancedCronJobSpec) { s.Paused = new(true) })
	w.has(v1alpha1.AdvancedCronJobScheduled, metav1.ConditionFalse, "Paused")
	version := w.object.ResourceVersion
	clock := create(t, server, nil)
	clock.until("slots pass", func() error { return atLeast(len(clock.jobs()), 2) })
	w.Get(w.object)
	if len(w.jobs()) > 0 || w.object.ResourceVersion != version {
		t.Errorf("%d Jobs, version %s, want none and %s", len(w.jobs()), w.object.ResourceVersion, version)
	}
	w.edit(func(s *v1alpha1.AdvancedCronJobSpec) { s.Paused = new(false) })
	w.until("a Job exists", func() error { return atLeast(len(w.jobs()), 1) })
}

// testEdit checks that another schedule runs nothing of the past, and that another template is used.
func testEdit(t *testing.T) {
	w := create(t, server, func(s *v1alpha1.AdvancedCronJobSpec) { s.Schedule = "0 0 1 1 *" })
	w.has(v1alpha1.AdvancedCronJobScheduled, metav1.ConditionTrue, "Scheduled")
	w.edit(func(s *v1alpha1.AdvancedCronJobSpec) { s.Schedule, s.TimeZone = "* * * * *", new("Asia/Tokyo") })
	condition := w.has(v1alpha1.AdvancedCronJobScheduled, metav1.ConditionTrue, "Scheduled")
	next := w.object.Status.NextScheduleTime.Time
	if until := time.Until(next); until > time.Minute || !strings.Contains(condition.Message, "+09:00, Asia/Tokyo.") ||
		len(w.jobs()) > 0 && until > 59*time.Second {
		t.Errorf("condition %+v, next slot in %v, %d Jobs", condition, until, len(w.jobs()))
	}
	w.edit(func(s *v1alpha1.AdvancedCronJobSpec) {
		s.Schedule, s.TimeZone = "@every 1s", nil
		s.Template.JobTemplate = &runtime.RawExtension{Raw: []byte(strings.Replace(template, "report:1", "report:2", 1))}
	})
	w.until("a Job has the new template", func() error {
		jobs := w.jobs()
		return await.ErrorIf(len(jobs) == 0 || jobs[len(jobs)-1].Spec.Template.Spec.Containers[0].Image != "report:2", "%d Jobs", len(jobs))
	})
}

// testQuota checks that a run is tried again until its deadline, and that the condition has the API server's answer.
func testQuota(t *testing.T) {
	w := &world{World: env.NewWorld(t, server)}
	quota := w.Quota("none", "count/jobs.batch", "0")
	w.object = newObject(w.Namespace, "@every 1s")
	w.CreateFor(w.object)
	if condition := w.has(v1alpha1.AdvancedCronJobJobsCreated, metav1.ConditionFalse, "Refused"); !strings.Contains(condition.Message, "exceeded quota: none") {
		t.Errorf("condition %+v", condition)
	}
	w.Delete(quota)
	w.has(v1alpha1.AdvancedCronJobJobsCreated, metav1.ConditionTrue, "Created")
}

// testTemplate checks what the condition says about a template that the API server refuses.
func testTemplate(t *testing.T) {
	for raw, want := range map[string]string{
		`{"spec": {"template": {"spec": {"containers": []}}}}`:         "spec.template.spec.containers: Required value",
		`{"spec": {"parallelism": "many", "template": {}}}`:            "parallelism",
		`{"metadata": {"labels": {"a": 1}}, "spec": {"template": {}}}`: "spec.template.jobTemplate: json: cannot unmarshal number",
	} {
		w := create(t, server, func(s *v1alpha1.AdvancedCronJobSpec) {
			s.Template.JobTemplate = &runtime.RawExtension{Raw: []byte(raw)}
		})
		if condition := w.has(v1alpha1.AdvancedCronJobJobsCreated, metav1.ConditionFalse, "Refused"); !strings.Contains(condition.Message, want) {
			t.Errorf("condition %+v, want %s", condition, want)
		}
	}
}

// testForeignJob checks that a Job of somebody else that has the name of a slot's is not touched.
func testForeignJob(t *testing.T) {
	w := create(t, server, func(s *v1alpha1.AdvancedCronJobSpec) {
		s.Schedule, s.SuccessfulJobsHistoryLimit = "@every 3s", new(int32(0))
	})
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.object.Namespace, Name: fmt.Sprintf("report-%d", w.object.CreationTimestamp.Add(3*time.Second).Unix()),
		Annotations: map[string]string{v1alpha1.ScheduledAtKey: "2026-01-01T00:00:00Z"},
	}}
	foreign.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "other:1"}}}
	w.Create(foreign)
	if condition := w.has(
		v1alpha1.AdvancedCronJobJobsCreated, metav1.ConditionFalse, "Refused",
	); !strings.Contains(condition.Message, "belongs to another object: the run is dropped") {
		t.Errorf("condition %+v", condition)
	}
	w.has(v1alpha1.AdvancedCronJobJobsCreated, metav1.ConditionTrue, "Created")
	after := &batchv1.Job{}
	after.Namespace, after.Name = foreign.Namespace, foreign.Name
	w.Get(after)
	if after.UID != foreign.UID {
		t.Error("the Job of somebody else was replaced")
	}
}

// testRestart ends the program and starts it again, while OpenKruise holds its lease for a time.
func testRestart(t *testing.T) {
	e := env.Start(t)
	stop := start(t, e)
	w := create(t, e, func(s *v1alpha1.AdvancedCronJobSpec) { s.Schedule = "@every 2s" })
	w.until("a Job exists", func() error { return atLeast(len(w.jobs()), 1) })
	stop()
	before := len(w.jobs())
	lease := program.OpenKruiseLeads(t, e, 15*time.Second)
	start(t, e)
	w.until("the program has seen the lease", func() error {
		events := &corev1.EventList{}
		expect.NoError(t, e.Client.List(t.Context(), events, client.InNamespace("kruise-system")))
		return atLeast(len(events.Items), 1)
	})
	w.until("slots pass", func() error {
		w.Get(lease)
		passed := time.Since(lease.CreationTimestamp.Time)
		return await.ErrorIf(passed < 5*time.Second, "%v have passed", passed)
	})
	expect.Equal(t, "Jobs while OpenKruise holds its lease", before, len(w.jobs()))
	w.Delete(lease)
	w.until("the program runs again", func() error { return atLeast(len(w.jobs()), before+2) })
	if len(w.Events("MissedRuns")) == 0 {
		t.Error("no event names the runs that did not start")
	}
	jobs, slots := w.jobs(), sets.New[string]()
	for i := range jobs {
		slots.Insert(slot(t, &jobs[i]).String())
	}
	if slots.Len() != len(jobs) {
		t.Errorf("%d Jobs for %d slots", len(jobs), slots.Len())
	}
}

// testMany checks objects that are due at the same time.
func testMany(t *testing.T) {
	w := &world{World: env.NewWorld(t, server)}
	for i := range 50 {
		w.object = newObject(w.Namespace, "@every 5s")
		w.object.Name = fmt.Sprintf("report-%d", i)
		w.Create(w.object)
	}
	w.until("each object has a Job", func() error {
		owners := sets.New[string]()
		jobs := w.jobs()
		for i := range jobs {
			owners.Insert(metav1.GetControllerOf(&jobs[i]).Name)
		}
		return atLeast(owners.Len(), 50)
	})
	expect.NoError(t, server.Client.DeleteAllOf(t.Context(), &v1alpha1.AdvancedCronJob{}, client.InNamespace(w.Namespace)))
}

// testPolicy checks what the policy refuses to the service account.
func testPolicy(t *testing.T) {
	account := server.ClientOf(t, server.ServiceAccount(t, env.SystemNamespace, workloads.Name, nil))
	owner := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "AdvancedCronJob", Name: "report", UID: "1", Controller: new(true)}
	for name, change := range map[string]func(*batchv1.Job){
		"no owner":       func(job *batchv1.Job) { job.OwnerReferences = nil },
		"another kind":   func(job *batchv1.Job) { job.OwnerReferences[0].Kind = "CronJob" },
		"another group":  func(job *batchv1.Job) { job.OwnerReferences[0].APIVersion = "batch/v1" },
		"another name":   func(job *batchv1.Job) { job.Name = "other-1" },
		"kube-system":    func(job *batchv1.Job) { job.Namespace = metav1.NamespaceSystem },
		"its own":        func(job *batchv1.Job) { job.Namespace = env.SystemNamespace },
		"not controller": func(job *batchv1.Job) { job.OwnerReferences[0].Controller = nil },
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "report-1", OwnerReferences: []metav1.OwnerReference{owner}}}
		job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "a:1"}}}
		expect.NoError(t, account.Create(t.Context(), job.DeepCopy(), client.DryRunAll))
		change(job)
		env.Refused(
			t, name, "seamark-workloads cannot write Job", func(ctx context.Context) error { return account.Create(ctx, job.DeepCopy(), client.DryRunAll) },
		)
	}
}

// server is the API server that the tests share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// start runs seamark-workloads until the test ends or the function is called.
func start(t *testing.T, e *env.Env) (stop func()) {
	t.Helper()
	cfg := program.Install(t, e, "config/cronjobs/rbac.yaml", "config/cronjobs/policy.yaml")
	return program.Start(t, cfg, func(_ *workloads.Options, enabled *configv1alpha1.WorkloadControllers) {
		enabled.AdvancedCronJob.Enabled = new(true)
	})
}

// world is an AdvancedCronJob in its own namespace.
type world struct {
	*env.World
	object *v1alpha1.AdvancedCronJob
}

const template = `{"metadata": {"labels": {"app": "report"}}, "spec": {"backoffLimit": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "report:1"}]}}}}`

func newObject(namespace, schedule string) *v1alpha1.AdvancedCronJob {
	return &v1alpha1.AdvancedCronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "report"},
		Spec: v1alpha1.AdvancedCronJobSpec{
			Schedule: schedule, Template: v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{Raw: []byte(template)}},
		},
	}
}

// create creates an object that runs every second, and deletes it at the end of the test.
func create(t *testing.T, e *env.Env, change func(*v1alpha1.AdvancedCronJobSpec)) *world {
	t.Helper()
	w := &world{World: env.NewWorld(t, e)}
	w.object = newObject(w.Namespace, "@every 1s")
	if change != nil {
		change(&w.object.Spec)
	}
	w.CreateFor(w.object)
	return w
}

// edit changes the specification.
func (w *world) edit(change func(*v1alpha1.AdvancedCronJobSpec)) {
	w.Helper()
	w.Edit(w.object, func() { change(&w.object.Spec) })
}

// jobs returns the Jobs that exist, the oldest slot first.
func (w *world) jobs() []batchv1.Job {
	w.Helper()
	list := &batchv1.JobList{}
	w.List(list)
	slices.SortFunc(list.Items, func(a, b batchv1.Job) int { return slot(w, &a).Compare(slot(w, &b)) })
	return list.Items
}

// slot returns the slot of a Job.
func slot(t testing.TB, job *batchv1.Job) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, job.Annotations[v1alpha1.ScheduledAtKey])
	expect.NoError(t, err)
	return at
}

// complete ends a Job as the Job controller does, once.
func (w *world) complete(job *batchv1.Job) {
	w.Helper()
	if job.Status.CompletionTime != nil {
		return
	}
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(
			job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now},
		)
	}
	expect.NoError(w, client.IgnoreNotFound(w.Client.Status().Update(w.Context(), job)))
}

// until waits until the check of the object, which it reads, succeeds.
func (w *world) until(what string, check func() error) {
	w.Helper()
	w.Shows(w.object, what, check)
}

// has waits for a condition.
func (w *world) has(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	w.Helper()
	return w.Condition(w.object, &w.object.Status.Conditions, kind, status, reason)
}
