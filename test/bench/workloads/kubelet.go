// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/expect"
)

// kubelets run the containers of all pods at once: a pod becomes ready with one write of its status. Before, as
// the scheduler does, they bind a pod that is bound to no node yet to the only one that it permits.
// Pods have no termination grace period, so the API server removes them without a kubelet.
type kubelets struct {
	client client.Client
	// writes is the number of status writes, and binds that of bindings.
	writes, binds atomic.Int64
	// queue gives a pod to one worker at a time: the last status written is that of the last state of the pod.
	queue workqueue.TypedInterface[types.UID]

	mu   sync.Mutex
	last map[types.UID]*corev1.Pod
	err  error
}

// startKubelets starts kubelets that end with the run.
func startKubelets(b *harness.Bench, s *harness.Server) *kubelets {
	b.Helper()
	ctx := b.Context()
	k := &kubelets{client: s.Client, queue: workqueue.NewTyped[types.UID](), last: map[types.UID]*corev1.Pod{}}
	wait := fixture.Follow(b, s, &corev1.PodList{}, k.see, client.InNamespace(fixture.Namespace))
	var workers sync.WaitGroup
	for range harness.Clients {
		workers.Go(func() { k.work(ctx) })
	}
	context.AfterFunc(ctx, k.queue.ShutDown)
	b.Cleanup(func() {
		workers.Wait()
		expect.Success(b, wait())
	})
	return k
}

// see enqueues a pod that is new or whose readiness changes.
func (k *kubelets) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(k.last, pod.UID)
		return
	}
	last, seen := k.last[pod.UID]
	k.last[pod.UID] = pod
	if pod.DeletionTimestamp == nil && (!seen || gatesTrue(last) != gatesTrue(pod)) {
		k.queue.Add(pod.UID)
	}
}

func gatesTrue(pod *corev1.Pod) bool {
	gates := map[corev1.PodConditionType]bool{}
	for _, c := range pod.Status.Conditions {
		gates[c.Type] = c.Status == corev1.ConditionTrue
	}
	for _, g := range pod.Spec.ReadinessGates {
		if !gates[g.ConditionType] {
			return false
		}
	}
	return true
}

func (k *kubelets) work(ctx context.Context) {
	for {
		uid, stopped := k.queue.Get()
		if stopped {
			return
		}
		if err := k.run(ctx, uid); err != nil && ctx.Err() == nil {
			k.mu.Lock()
			k.err = err
			k.mu.Unlock()
		}
		k.queue.Done(uid)
	}
}

// pods returns the number of pods.
func (k *kubelets) pods() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.last)
}

// bind binds the pod to the node that it permits.
func (k *kubelets) bind(ctx context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodefit.Target(pod)}}
	err := k.client.SubResource("binding").Create(ctx, &corev1.Pod{ObjectMeta: pod.ObjectMeta}, binding)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The pod was deleted.
	}
	if err != nil {
		return fmt.Errorf("bind pod %s: %w", pod.Name, err)
	}
	k.binds.Add(1)
	return nil
}

// run writes that the containers of a pod run.
func (k *kubelets) run(ctx context.Context, uid types.UID) error {
	k.mu.Lock()
	pod, exists := k.last[uid]
	k.mu.Unlock()
	if !exists {
		return nil // The pod was deleted.
	}
	if pod.Spec.NodeName == "" {
		if err := k.bind(ctx, pod); err != nil {
			return err
		}
	}
	status := fixture.Running("10.0.0.1")
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == corev1.PodReady && !gatesTrue(pod) {
			c.Status = corev1.ConditionFalse
		}
	}
	for i, c := range pod.Spec.Containers {
		running := &status.ContainerStatuses[i]
		running.Image, running.ImageID = c.Image, "sha256:"+c.Image
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	target.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err = k.client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, body))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The pod was deleted.
	}
	if err != nil {
		return fmt.Errorf("write status of pod %s: %w", pod.Name, err)
	}
	k.writes.Add(1)
	return nil
}

// failure returns the last error of a write.
func (k *kubelets) failure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// The rows about pods of a namespace in which nothing of Seamark is used.
const (
	rowForeignStatus = "API server's processor time per write of a pod's status"
	rowForeignCreate = "API server's processor time per creation of a pod"
)

// foreignBudget is how many times the floor may be used: 1% is less than most runs can distinguish.
const foreignBudget = 1.01

// bystander is an API server with pods that nothing of Seamark selects.
type bystander struct {
	server    *harness.Server
	namespace string
	pods      int
	// status and creation are the times per write in microseconds, one of each round.
	status, creation []float64
}

// measureForeign measures writes of pods in a namespace without sets and markers, with everything installed and with nothing. No
// program runs: what a program costs that watches pods is part of other measures. Both sides are measured in turn.
func measureForeign(b *harness.Bench) harness.Output {
	bare, full := b.Bare(), b.Server()
	full.InstallAll()
	awaitPolicies(b, full)
	sides := []*bystander{{server: bare}, {server: full}}
	rounds := harness.Pick(b, 9, 1)
	for _, side := range sides {
		side.open(b)
	}
	for round := range rounds {
		for n := range sides {
			sides[(n+round)%len(sides)].play(b, round)
		}
	}
	row := func(name string, values, floors []float64) harness.Result {
		return harness.Result{
			Name: name, Value: middle(values), Unit: "µs", Floor: harness.Positive(middle(floors)), FloorName: "nothing installed",
			Budget: harness.RatioAtMost(foreignBudget), Noise: halfRange(values),
		}
	}
	return harness.Output{
		Results: []harness.Result{row(rowForeignStatus, sides[1].status, sides[0].status), row(rowForeignCreate, sides[1].creation, sides[0].creation)},
		Notes: []string{fmt.Sprintf(
			"Medians of %d rounds of each side in turn, with %d pods that have 12 variables. No program runs.", rounds, sides[0].pods,
		)},
	}
}

// awaitPolicies waits until the API server evaluates the policies: that of RoleBindings refuses one.
func awaitPolicies(b *harness.Bench, s *harness.Server) {
	b.Helper()
	b.Until("the policies have effect", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := s.Client.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unlabelled"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grants.Role},
		}, client.DryRunAll)
		return apierrors.IsForbidden(err), nil
	})
}

// open creates the pods whose status is written.
func (s *bystander) open(b *harness.Bench) {
	b.Helper()
	s.pods, s.namespace = harness.Pick(b, 500, 20), s.server.Namespace(b.T)
	s.create(b, "kept", s.pods)
}

// create creates pods with 12 variables.
func (s *bystander) create(b *harness.Bench, prefix string, n int) {
	b.Helper()
	var variables []corev1.EnvVar
	for i := range 12 {
		variables = append(variables, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value"})
	}
	b.Each(n, harness.Clients, func(ctx context.Context, i int) error {
		return s.server.Client.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", prefix, i), Labels: map[string]string{"app": prefix}},
			Spec: corev1.PodSpec{
				NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/main:1", Env: variables}},
			},
		})
	})
}

// play measures one round.
func (s *bystander) play(b *harness.Bench, round int) {
	b.Helper()
	const writes = 4
	status := s.server.Counted(func() {
		b.Each(writes*s.pods, harness.Clients, func(ctx context.Context, i int) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("kept-%d", i%s.pods)}}
			body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","message":"%d-%d"}]}}`, round, i)
			return s.server.Client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(body)))
		})
	})
	prefix := fmt.Sprintf("round-%d", round)
	creation := s.server.Counted(func() { s.create(b, prefix, 2*s.pods) })
	s.status = append(s.status, float64(status.CPU.Microseconds())/float64(writes*s.pods))
	s.creation = append(s.creation, float64(creation.CPU.Microseconds())/float64(2*s.pods))
	b.Must(s.server.Client.DeleteAllOf(
		b.Context(), &corev1.Pod{}, client.InNamespace(s.namespace), client.MatchingLabels{"app": prefix}, client.GracePeriodSeconds(0),
	))
}

// halfRange returns half of the difference between the highest and the lowest value, relative to the median.
func halfRange(values []float64) float64 {
	center := middle(values)
	if center == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / 2 / center
}

func middle(values []float64) float64 { return harness.Percentile(values, 0.5) }
