// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows of the measure of AdvancedCronJobs.
const (
	rowDueAll      = "1,000 objects due at one instant: until all Jobs exist"
	rowDueMedian   = "10 objects due at one instant: lateness of a Job, p50"
	rowCronWrites  = "writes per run, while no Job ends"
	rowCronMemory  = "memory (RSS) of 5,000 idle objects"
	rowCronRestart = "writes of a restart with 5,000 idle objects"
)

// crons is an API server with objects that create Jobs.
type crons struct {
	*jobs
	// seen are the arrivals of the Jobs by owner and slot.
	seen map[string]map[time.Time]time.Time
}

// cronSide is a kind of objects that create Jobs.
type cronSide struct {
	// name is the beginning of the names of objects.
	name string
	// create returns an object, empty is one without a name.
	create func(name, schedule string) client.Object
	empty  client.Object
}

const cronNamespace = "cron"

func jobTemplate() batchv1.JobTemplateSpec {
	return batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
	}}}}
}

func cronJobs() cronSide {
	return cronSide{name: "builtin", empty: &batchv1.CronJob{}, create: func(name, schedule string) client.Object {
		return &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: cronNamespace, Name: name},
			Spec:       batchv1.CronJobSpec{Schedule: schedule, JobTemplate: jobTemplate()},
		}
	}}
}

func advancedCronJobs() cronSide {
	// Templates always encode.
	raw, _ := json.Marshal(jobTemplate())
	return cronSide{name: "advanced", empty: &v1alpha1.AdvancedCronJob{}, create: func(name, schedule string) client.Object {
		return &v1alpha1.AdvancedCronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: cronNamespace, Name: name},
			Spec:       v1alpha1.AdvancedCronJobSpec{Schedule: schedule, Template: v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{Raw: raw}}},
		}
	}}
}

// measureCronJobs compares AdvancedCronJobs with the CronJobs of Kubernetes, one after the other on the same API server.
func measureCronJobs(b *harness.Bench) harness.Output {
	c := &crons{jobs: newJobs(b, cronNamespace), seen: map[string]map[time.Time]time.Time{}}
	fixture.Follow(b, c.server, &batchv1.JobList{}, c.note, client.InNamespace(cronNamespace))
	few, many, idle := 10, harness.Pick(b, 1000, 20), harness.Pick(b, 5000, 50)
	peer := c.server.ControllerManager("cronjob-controller", "--concurrent-cron-job-syncs="+syncs)
	peerFew, _ := c.due(cronJobs(), few)
	peerMany, _ := c.due(cronJobs(), many)
	peer.Stop()
	ours := c.server.CronJobs()
	ownFew, _ := c.due(advancedCronJobs(), few)
	ownMany, writes := c.due(advancedCronJobs(), many)
	before := ours.Usage().RSS
	c.create(advancedCronJobs(), idle, "0 0 1 1 *")
	memory := max(0, float64(ours.Usage().RSS)-float64(before)) / harness.Mebibyte
	restarted := c.restart(ours, harness.Pick(b, 20*time.Second, 3*time.Second))
	return harness.Output{
		Results: []harness.Result{
			{Name: rowDueAll, Value: slices.Max(ownMany), Unit: "ms", Floor: slices.Max(peerMany), FloorName: "CronJob", Budget: harness.RatioAtMost(1)},
			{
				Name: rowDueMedian, Value: harness.Percentile(ownFew, 0.5), Unit: "ms", Floor: harness.Percentile(peerFew, 0.5),
				FloorName: "CronJob", Budget: harness.AtMost(50),
			},
			{Name: rowCronWrites, Value: float64(writes) / float64(many), Budget: harness.AtMost(2)},
			{Name: rowCronMemory, Value: memory, Unit: "MiB", Budget: harness.AtMost(30)},
			{Name: rowCronRestart, Value: float64(restarted), Budget: harness.AtMost(0)},
		},
		Notes: []string{"Nothing runs the Jobs. A Job is late by the time from its slot until a watch shows it."},
	}
}

// note records when a Job arrived.
func (c *crons) note(event watch.Event) {
	job, ok := event.Object.(*batchv1.Job)
	if !ok || event.Type != watch.Added {
		return
	}
	owner, text := metav1.GetControllerOfNoCopy(job), job.Annotations[v1alpha1.ScheduledAtKey]
	if text == "" {
		text = job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]
	}
	slot, err := time.Parse(time.RFC3339, text)
	if owner == nil || err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[owner.Name] == nil {
		c.seen[owner.Name] = map[time.Time]time.Time{}
	}
	c.seen[owner.Name][slot.UTC()] = time.Now()
}

// create creates objects and waits until nothing happens.
func (c *crons) create(side cronSide, n int, schedule string) []string {
	c.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d-%d", side.name, n, i)
	}
	c.Each(n, harness.Clients, func(ctx context.Context, i int) error {
		return c.server.Client.Create(ctx, side.create(names[i], schedule))
	})
	c.Idle(harness.Pick(c.Bench, 3*time.Second, time.Second))
	return names
}

// due returns how late the Jobs of objects are that are due at the same time, in ms, and the writes for them.
func (c *crons) due(side cronSide, n int) (late []float64, writes int) {
	c.Helper()
	names := c.create(side, n, harness.Pick(c.Bench, "* * * * *", "@every 3s"))
	from := time.Now()
	counted := c.server.Counted(func() {
		c.Until("each object has a Job", 50*time.Millisecond, func(context.Context) (bool, error) {
			late = c.late(names, from)
			return len(late) == n, nil
		})
		// The statuses follow.
		c.Idle(harness.Pick(c.Bench, 8*time.Second, time.Second))
	})
	writes = total(counted)
	for _, object := range []client.Object{side.empty, &batchv1.Job{}} {
		c.Must(c.server.Client.DeleteAllOf(
			c.Context(), object, client.InNamespace(cronNamespace), client.PropagationPolicy(metav1.DeletePropagationBackground),
		))
	}
	c.Idle(harness.Pick(c.Bench, 2*time.Second, 500*time.Millisecond))
	return late, writes
}

// late returns how late the first Job of each object is whose slot is after the time.
func (c *crons) late(names []string, from time.Time) []float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var late []float64
	for _, name := range names {
		slots := slices.SortedFunc(maps.Keys(c.seen[name]), time.Time.Compare)
		if i := slices.IndexFunc(slots, func(slot time.Time) bool { return slot.After(from) }); i >= 0 {
			late = append(late, c.seen[name][slots[i]].Sub(slots[i]).Seconds()*1000)
		}
	}
	return late
}

// jobs is an API server with a namespace in which objects create Jobs or pods.
type jobs struct {
	*harness.Bench
	server *harness.Server
	// mu guards what the watch of the namespace counts.
	mu sync.Mutex
	// pods are those that kubelets have not seen. They do not block the watch.
	pods chan *corev1.Pod
}

func newJobs(b *harness.Bench, namespace string) *jobs {
	b.Helper()
	j := &jobs{Bench: b, server: b.Server(), pods: make(chan *corev1.Pod, 10_000)}
	b.Must(j.server.Client.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	return j
}

// follow passes the events of the pods of the namespace to see, which holds the lock, and the new pods to kubelets, which
// write each of the statuses that report returns.
func (j *jobs) follow(namespace string, see func(kind watch.EventType, pod *corev1.Pod), report func(*corev1.Pod) []corev1.PodStatus) {
	j.Helper()
	for range harness.Clients {
		go j.kubelets(report)
	}
	fixture.Follow(j.Bench, j.server, &corev1.PodList{}, func(event watch.Event) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		see(event.Type, pod)
		if event.Type == watch.Added {
			j.pods <- pod
		}
	}, client.InNamespace(namespace))
}

func (j *jobs) kubelets(report func(*corev1.Pod) []corev1.PodStatus) {
	for {
		select {
		case <-j.Context().Done():
			return
		case pod := <-j.pods:
			pod = pod.DeepCopy()
			for _, pod.Status = range report(pod) {
				if err := j.server.Client.Status().Update(j.Context(), pod); err != nil && j.Context().Err() == nil {
					j.Error(err)
				}
			}
		}
	}
}

// restart returns the number of writes of a restart of the controllers.
func (j *jobs) restart(controllers *harness.Program, idle time.Duration) int {
	j.Helper()
	return total(j.server.Counted(func() {
		controllers.Restart()
		j.Idle(idle)
	}))
}

// total returns the number of writes.
func total(counted harness.Counters) int {
	sum := 0
	for _, written := range writesOf(counted.Requests) {
		sum += written
	}
	return sum
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// joinNodes creates ready nodes that have images.
func (j *jobs) joinNodes(nodes int, images []corev1.ContainerImage) {
	j.Helper()
	j.Each(nodes, harness.Clients, func(ctx context.Context, i int) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{"pool": "game"}}}
		if err := j.server.Client.Create(ctx, node); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		node.Status.Images = images
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		return j.server.Client.Status().Update(ctx, node)
	})
}
