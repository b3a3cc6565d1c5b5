// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/follow"
)

// absent represents a mark that a pod does not have.
const absent = "-"

// openKruise writes as OpenKruise's manager and daemon do. Their field managers are derived from
// their user agents.
type openKruise struct {
	*suite
	manager, daemon ctrl.Client
}

func newOpenKruise(s *suite) *openKruise {
	s.Helper()
	as := func(userAgent string) ctrl.Client {
		config := rest.CopyConfig(s.Config)
		config.UserAgent = userAgent
		client, err := ctrl.New(config, ctrl.Options{Scheme: s.Client.Scheme()})
		cluster.Must(s, err)
		return client
	}
	return &openKruise{suite: s, manager: as("kruise-manager/NodePodProbe-controller"), daemon: as("kruise-daemon-podprobe")}
}

// leave creates what OpenKruise leaves for the marker and its pods: the finalizer, a plan for
// the pods' node with the marker's probes, the last reported states, and the marks of the state
// Succeeded.
func (k *openKruise) leave(marker *appsv1alpha1.PodProbeMarker, states map[string]appsv1alpha1.ProbeState, labels map[string]string, conditionType string) {
	k.Helper()
	ctx, before := k.Context(), metav1.NewTime(time.Now().Truncate(time.Second))
	marker.Finalizers = []string{appsv1alpha1.PodProbeMarkerFinalizer}
	cluster.Must(k, k.manager.Update(ctx, marker))
	npps := map[string]*appsv1alpha1.NodePodProbe{}
	for name, state := range states {
		pod := k.getPod(name)
		npp := npps[pod.Spec.NodeName]
		if npp == nil {
			npp = k.emptyPlan(pod.Spec.NodeName)
			npps[pod.Spec.NodeName] = npp
		}
		planned := appsv1alpha1.PodProbe{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), IP: pod.Status.PodIP}
		reported := appsv1alpha1.PodProbeStatus{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}
		for _, probe := range marker.Spec.Probes {
			name := marker.Name + "#" + probe.Name
			planned.Probes = append(planned.Probes, appsv1alpha1.ContainerProbe{Name: name, ContainerName: probe.ContainerName, Probe: probe.Probe})
			reported.ProbeStates = append(reported.ProbeStates, appsv1alpha1.ContainerProbeState{
				Name: name, State: state, LastProbeTime: before, LastTransitionTime: before,
			})
		}
		npp.Spec.PodProbes = append(npp.Spec.PodProbes, planned)
		cluster.Must(k, k.manager.Update(ctx, npp))
		npp.Status.PodProbeStatuses = append(npp.Status.PodProbeStatuses, reported)
		cluster.Must(k, k.daemon.Status().Update(ctx, npp))

		for key, value := range labels {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(conditionType), Status: corev1.ConditionTrue, LastProbeTime: before, LastTransitionTime: before,
		})
		cluster.Must(k, k.manager.Status().Update(ctx, pod))
	}
}

// emptyPlan creates the node's NodePodProbe as OpenKruise does, without an owner.
func (k *openKruise) emptyPlan(node string) *appsv1alpha1.NodePodProbe {
	k.Helper()
	npp := &appsv1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
	cluster.Must(k, ctrl.IgnoreNotFound(k.Client.Delete(k.Context(), npp.DeepCopy())))
	cluster.Must(k, k.manager.Create(k.Context(), npp))
	return npp
}

// scale sets the replicas of Seamark's manager. If off is set, its agents run on no node.
func (s *suite) scale(ctx context.Context, replicas int32, off bool) error {
	selector := `"seamark.test/off":null`
	if off {
		selector = `"seamark.test/off":"true"`
	}
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: "seamark-manager"}}
	agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: "seamark-agent"}}
	return errors.Join(
		s.Client.Patch(ctx, manager, ctrl.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))),
		s.Client.Patch(ctx, agent, ctrl.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"template":{"spec":{"nodeSelector":{%s}}}}}`, selector))),
	)
}

// turnOff stops Seamark until the test ends or turnOn is called.
func (s *suite) turnOff() (turnOn func()) {
	s.Helper()
	manager := &appsv1.Deployment{}
	cluster.Must(s, s.Client.Get(s.Context(), ctrl.ObjectKey{Namespace: cluster.SystemNamespace, Name: "seamark-manager"}, manager))
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), cluster.Timeout)
		defer cancel()
		if err := s.scale(ctx, *manager.Spec.Replicas, false); err != nil {
			s.Errorf("start Seamark again: %v", err)
		}
	})
	cluster.Must(s, s.scale(s.Context(), 0, true))
	s.Eventually("Seamark is stopped", func(ctx context.Context) error {
		for _, component := range []string{"manager", "agent"} {
			pods := &corev1.PodList{}
			err := s.Client.List(ctx, pods, ctrl.InNamespace(cluster.SystemNamespace), ctrl.MatchingLabels{"app.kubernetes.io/component": component})
			if err == nil && len(pods.Items) > 0 {
				err = fmt.Errorf("%d pods of %s", len(pods.Items), component)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return func() {
		s.Helper()
		cluster.Must(s, s.scale(s.Context(), *manager.Spec.Replicas, false))
		s.systemReady("manager")
		s.systemReady("agent")
	}
}

// watchMarks watches the pods until the returned function is called. The function returns the
// successive values of each mark, by "pod mark", with the marks of testMarks.
func (s *suite) watchMarks() (stop func() map[string][]string) {
	s.Helper()
	values := map[string][]string{}
	see := func(pod *corev1.Pod) {
		now := map[string]string{}
		for mark, value := range testMarks(pod) {
			if c, is := value.(corev1.PodCondition); is {
				value = string(c.Status)
			}
			now[pod.Name+" "+mark] = fmt.Sprint(value)
		}
		for mark := range values {
			if _, has := now[mark]; !has && len(mark) > len(pod.Name) && mark[:len(pod.Name)+1] == pod.Name+" " {
				now[mark] = absent
			}
		}
		for mark, value := range now {
			if seen := values[mark]; len(seen) == 0 || seen[len(seen)-1] != value {
				values[mark] = append(seen, value)
			}
		}
	}
	ctx, cancel := context.WithCancel(s.Context())
	wait, err := follow.Objects(ctx, s.Client, &corev1.PodList{}, func(event watch.Event) {
		if pod, isPod := event.Object.(*corev1.Pod); isPod {
			see(pod)
		}
	}, ctrl.InNamespace(s.Namespace))
	if err != nil {
		cancel()
	}
	cluster.Must(s, err)
	return func() map[string][]string {
		cancel()
		cluster.Must(s, wait())
		return values
	}
}

// ownedBy expects that the field manager owns fields of the pod's status.
func ownedBy(manager string) expectation {
	return func(pod *corev1.Pod) error {
		if !slices.ContainsFunc(pod.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == manager && entry.Subresource == "status"
		}) {
			return fmt.Errorf("%s owns no fields of the status", manager)
		}
		return nil
	}
}

// TestMoveFromOpenKruise performs the migration in docs/migrate-from-openkruise.md with running
// pods. The test creates the objects that OpenKruise leaves.
func TestMoveFromOpenKruise(t *testing.T) {
	s := newSuite(t)
	kruise := newOpenKruise(s)
	labels := map[string]string{"app": "moved"}
	marker := newMarker("moved", labels, newProbe("ok", shell(sayAndCheck), condition("test.dev/ok"),
		labelled(appsv1alpha1.ProbeSucceeded, map[string]string{"ok": "true", "good": "yes"}),
		labelled(appsv1alpha1.ProbeFailed, map[string]string{"ok": "false"})))
	// OpenKruise accepts an unset timeout.
	marker.Spec.Probes[0].Probe.TimeoutSeconds = 0
	s.Create(newPod("right", "touch /tmp/ok; "+idle, labels), newPod("turned", idle, labels))
	s.running("right", "turned")
	ours, upstream := s.crds()

	turnOn := s.turnOff()
	cluster.Must(t, s.UseCRDs(t.Context(), upstream))
	s.Create(marker)
	kruise.leave(marker, map[string]appsv1alpha1.ProbeState{"right": appsv1alpha1.ProbeSucceeded, "turned": appsv1alpha1.ProbeFailed},
		map[string]string{"ok": "true", "good": "yes"}, "test.dev/ok")
	seen := s.watchMarks()
	turnOn()
	s.podIs("right", ownedBy("seamark"))
	s.podIs("turned", ownedBy("seamark"), hasCondition("test.dev/ok", corev1.ConditionFalse), hasLabel("ok", "false"), lacksLabel("good"))
	s.Never(5*time.Second, "a correct mark changed", s.meets("right",
		hasCondition("test.dev/ok", corev1.ConditionTrue), hasLabel("ok", "true"), hasLabel("good", "yes")))
	moved := seen()
	for mark, want := range map[string][]string{
		"right condition test.dev/ok": {"True"}, "right label ok": {"true"}, "right label good": {"yes"},
		"turned condition test.dev/ok": {"True", "False"}, "turned label ok": {"true", "false"}, "turned label good": {"yes", absent},
	} {
		if !slices.Equal(moved[mark], want) {
			t.Errorf("values of %s during the migration: %q, want %q", mark, moved[mark], want)
		}
	}

	s.Eventually("the states are in ProbeReports", s.inSlices(appsv1alpha1.ProbeSucceeded, "right"))
	s.Eventually("the states are in ProbeReports", s.inSlices(appsv1alpha1.ProbeFailed, "turned"))
	s.copied("right", appsv1alpha1.ProbeSucceeded)

	s.exec("right", "rm /tmp/ok")
	s.copied("right", appsv1alpha1.ProbeFailed)
	s.podIs("right", hasCondition("test.dev/ok", corev1.ConditionFalse), hasLabel("ok", "false"), lacksLabel("good"))
	cluster.Must(t, s.UseCRDs(t.Context(), ours))
	s.exec("turned", "touch /tmp/ok")
	s.podIs("turned", hasCondition("test.dev/ok", corev1.ConditionTrue), hasLabel("ok", "true"), hasLabel("good", "yes"))

	cluster.Must(t, s.Client.Delete(t.Context(), marker))
	for _, pod := range []string{"right", "turned"} {
		s.podIs(pod, lacksCondition("test.dev/ok"), lacksLabel("ok"), lacksLabel("good"))
	}
	s.Eventually("the marker is gone", func(ctx context.Context) error {
		err := s.Client.Get(ctx, s.Key("moved"), &appsv1alpha1.PodProbeMarker{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it exists: %w", err)
	})
}

// copied waits until NodePodProbe.status has the state of the pod's first probe, which OpenKruise
// would continue from.
func (s *suite) copied(pod string, state appsv1alpha1.ProbeState) {
	s.Helper()
	uid, node := string(s.getPod(pod).UID), s.getPod(pod).Spec.NodeName
	s.Eventually("NodePodProbe.status has the state of pod "+pod, func(ctx context.Context) error {
		plan := &appsv1alpha1.NodePodProbe{}
		if err := s.Client.Get(ctx, ctrl.ObjectKey{Name: node}, plan); err != nil {
			return err
		}
		for _, reported := range plan.Status.PodProbeStatuses {
			if reported.UID == uid && len(reported.ProbeStates) > 0 && reported.ProbeStates[0].State == state {
				return nil
			}
		}
		return fmt.Errorf("status %+v, want %s", plan.Status.PodProbeStatuses, state)
	})
}
