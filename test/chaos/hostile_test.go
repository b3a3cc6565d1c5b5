// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// hostile are pods and objects of tenants that mean harm. The marks of the other tenant must not change.
func (w *world) hostile() map[string]fault {
	all := map[string]fault{}
	for name, create := range map[string]func(context.Context, string) error{
		"hostile pods": w.hostilePods, "hostile markers": w.hostileMarkers,
	} {
		space := &corev1.Namespace{}
		all[name] = fault{
			least: 14 * time.Second, most: 20 * time.Second, api: true,
			inject: func(ctx context.Context, _ *rand.Rand) error {
				space = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chaos-hostile-"}}
				if err := w.Client.Create(ctx, space); err != nil {
					return fmt.Errorf("create a namespace: %w", err)
				}
				err := poll(ctx, time.Minute, func(ctx context.Context) bool {
					return w.Client.Get(ctx, client.ObjectKey{Namespace: space.Name, Name: "default"}, &corev1.ServiceAccount{}) == nil
				})
				if err != nil {
					return err
				}
				return create(ctx, space.Name)
			},
			heal: func(ctx context.Context) error {
				if err := w.Client.Delete(ctx, space); err != nil {
					return client.IgnoreNotFound(err)
				}
				// Until then, the probes run.
				return poll(ctx, recoveryLimit, func(ctx context.Context) bool {
					return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(space), space))
				})
			},
		}
	}
	slice := &seamarkv1alpha1.ProbeReport{}
	all["agent's token stolen"] = fault{
		least: 6 * time.Second, most: 10 * time.Second, api: true,
		inject: func(ctx context.Context, _ *rand.Rand) (err error) { slice, err = w.forge(ctx); return err },
		heal: func(ctx context.Context) error {
			if slice == nil { // Nothing was forged.
				return nil
			}
			return errors.Join(client.IgnoreNotFound(w.Client.Delete(ctx, slice)), w.repaired(ctx, slice))
		},
	}
	return all
}

// hostilePods creates pods whose probes write without end, never answer, answer a byte per second, or start many
// processes.
func (w *world) hostilePods(ctx context.Context, namespace string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"app": loadLabel}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{
				Name: "main", Image: cluster.BusyboxImage, Command: []string{"sh", "-c", `
					while :; do (while :; do echo -n x; sleep 1; done) | nc -l -p 8080; done &
					while :; do nc -l -p 9090 </dev/zero >/dev/null; done & wait`},
			}},
		},
	}
	for _, node := range w.nodes {
		each := pod.DeepCopy()
		each.Name, each.Spec.NodeName = "hostile-"+node.Name, node.Name
		if err := w.Client.Create(ctx, each); err != nil {
			return fmt.Errorf("create a hostile pod: %w", err)
		}
	}
	exec := func(line string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", line}}}
	}
	handlers := map[string]corev1.ProbeHandler{
		"endless": exec("cat /dev/zero"), "lines": exec("yes"), "hangs": exec("sleep 1000"),
		// As many as the machine bears: there is no limit of processes per pod in the cluster of the tests.
		"forks":  exec("for i in $(seq 200); do sleep 3 & done"),
		"slow":   {HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}},
		"floods": {GRPC: &corev1.GRPCAction{Port: 9090}},
	}
	var probes []v1alpha1.PodContainerProbe
	for name, handler := range handlers {
		hostile := probe(name, handler)
		hostile.PodConditionType, hostile.Probe.TimeoutSeconds = "hostile.example.com/"+name, 2
		probes = append(probes, hostile)
	}
	marker := markerOf("hostile", probes...)
	marker.Namespace = namespace
	if err := w.Client.Create(ctx, marker); err != nil {
		return fmt.Errorf("create a hostile marker: %w", err)
	}
	return nil
}

// hostileMarkers creates a pod that 500 markers select, with the longest labels.
func (w *world) hostileMarkers(ctx context.Context, namespace string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "victim", Labels: map[string]string{"app": loadLabel}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "main", Image: cluster.BusyboxImage, Command: []string{"sleep", "100000"}}},
		},
	}
	if err := w.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create a pod: %w", err)
	}
	const markers, longest = 500, 63
	value := strings.Repeat("v", longest)
	for i := range markers {
		key := fmt.Sprintf("%s.example.com/%s", strings.Repeat("d", longest), strings.Repeat("k", longest-4)+fmt.Sprintf("%04d", i))
		marker := markerOf(fmt.Sprintf("hostile-%d", i), probe(answerOK, corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
			v1alpha1.ProbeMarkerPolicy{
				State: v1alpha1.ProbeSucceeded, Labels: map[string]string{key: value}, Annotations: map[string]string{key: strings.Repeat("a", 1024)},
			}))
		marker.Namespace = namespace
		if err := w.Client.Create(ctx, marker); err != nil {
			return fmt.Errorf("create hostile marker %d: %w", i, err)
		}
	}
	return nil
}

var errAllowed = errors.New("a client with the token of an agent may do this")

// forge uses the token of the agent of the first node: it must not reach other nodes or pods, and states of pods of
// another node in a report and in the status of the plan of its own node must have no effect. It returns that report.
func (w *world) forge(ctx context.Context) (*seamarkv1alpha1.ProbeReport, error) {
	own, other := w.nodes[0].Name, w.nodes[len(w.nodes)-1].Name
	thief, err := client.New(w.stolen(own), client.Options{Scheme: w.Client.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	pods := &corev1.PodList{}
	if err := w.Client.List(ctx, pods, client.InNamespace(w.Namespace)); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	slice := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(own, 399)}, NodeName: own}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == other && other != own && len(slice.Pods) < 16 {
			slice.Pods = append(slice.Pods, seamarkv1alpha1.PodReport{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{{
				Name: "b-web#web", State: v1alpha1.ProbeUnknown, LastProbeTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}}})
		}
	}
	if err := w.forbidden(ctx, thief, own, other, slice, &pods.Items[0]); err != nil {
		return nil, err
	}
	if err := thief.Create(ctx, slice); err != nil {
		return nil, fmt.Errorf("report for its own node: %w", err)
	}
	return slice, forgeStatus(ctx, thief, own, slice.Pods)
}

// forbidden checks what the agent of a node must not do.
func (w *world) forbidden(ctx context.Context, thief client.Client, own, other string, slice *seamarkv1alpha1.ProbeReport, pod *corev1.Pod) error {
	plan := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: own}}
	attempts := map[string]error{
		"read pods":                     thief.List(ctx, &corev1.PodList{}, client.InNamespace(w.Namespace)),
		"delete pods":                   thief.Delete(ctx, pod),
		"delete the plan of its node":   thief.Delete(ctx, plan),
		"change the plan of its node":   thief.Patch(ctx, plan, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"podProbes": []}}`))),
		"create a plan of another node": thief.Create(ctx, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}}),
	}
	if other != own {
		foreign := slice.DeepCopy()
		foreign.Name, foreign.NodeName = seamarkv1alpha1.SliceName(other, 398), other
		attempts["report for another node"] = thief.Create(ctx, foreign)
		attempts["delete the plan of another node"] = thief.Delete(ctx, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: other}})
		attempts["write the status of another node's plan"] = forgeStatus(ctx, thief, other, slice.Pods)
	}
	for what, err := range attempts {
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("%s: %w", what, errors.Join(errAllowed, err))
		}
	}
	return nil
}

// forgeStatus adds states to the status of a node's plan, where the daemon of OpenKruise reports.
func forgeStatus(ctx context.Context, thief client.Client, node string, pods []seamarkv1alpha1.PodReport) error {
	plan := &v1alpha1.NodePodProbe{}
	if err := thief.Get(ctx, client.ObjectKey{Name: node}, plan); err != nil {
		return fmt.Errorf("read the plan of node %s: %w", node, err)
	}
	forged := plan.DeepCopy()
	for _, pod := range pods {
		forged.Status.PodProbeStatuses = append(
			forged.Status.PodProbeStatuses, v1alpha1.PodProbeStatus{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ProbeStates: pod.Probes},
		)
	}
	if err := thief.Status().Patch(ctx, forged, client.MergeFrom(plan)); err != nil {
		return fmt.Errorf("write the status of the plan of node %s: %w", node, err)
	}
	return nil
}

// repaired waits until the agents have removed what was forged from the status of their plans.
func (w *world) repaired(ctx context.Context, slice *seamarkv1alpha1.ProbeReport) error {
	forged := map[string]bool{}
	for _, pod := range slice.Pods {
		forged[pod.UID] = true
	}
	return w.plans(ctx, "repair the status", func(plan *v1alpha1.NodePodProbe) bool {
		return plan.Name != slice.NodeName || !slices.ContainsFunc(plan.Status.PodProbeStatuses, func(p v1alpha1.PodProbeStatus) bool { return forged[p.UID] })
	})
}

// plans waits until the plan of every node is as it should be.
func (w *world) plans(ctx context.Context, what string, good func(*v1alpha1.NodePodProbe) bool) error {
	var last []string
	err := poll(ctx, recoveryLimit, func(ctx context.Context) bool {
		all := &v1alpha1.NodePodProbeList{}
		if last = []string{"no plans"}; w.Client.List(ctx, all) != nil {
			return false
		}
		last = nil
		for i := range all.Items {
			if !good(&all.Items[i]) {
				last = append(last, all.Items[i].Name)
			}
		}
		return len(last) == 0
	})
	if err != nil {
		return fmt.Errorf("%s: not those of %s: %w", what, strings.Join(last, ", "), err)
	}
	return nil
}
