// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// toy keeps the number of pods of a CloneSet, with some mistakes that the model must find.
type toy struct {
	randomNames, ignoresHook, noRequeue, clockInStatus bool
	calls                                              int
}

const hook = "example.com/hook"

func (p *toy) Plan(view *State) (Step, error) {
	p.calls++
	set := view.Set.(*appsv1alpha1.CloneSet)
	var out Step
	serial, ready := int64(0), 0
	var active []*corev1.Pod
	for _, pod := range view.Pods {
		n, _ := strconv.ParseInt(pod.Annotations[appsv1alpha1.PodSerialAnnotationKey], 10, 64)
		serial = max(serial, n)
		if planning.Active(pod) {
			active = append(active, pod)
		}
		if planning.Ready(pod) && planning.Active(pod) {
			ready++
		}
	}
	serial = max(serial, set.Status.PodSerial)
	for i := len(active); i < int(*set.Spec.Replicas); i++ {
		serial++
		name := fmt.Sprintf("%s-%d", set.Name, serial)
		if p.randomNames {
			name = fmt.Sprintf("%s-x%d", set.Name, p.calls*100+i)
		}
		out.Creates = append(out.Creates, toyPod(set, name, serial))
	}
	for i := int(*set.Spec.Replicas); i < len(active); i++ {
		pod := active[i]
		switch {
		case held(&pub.LifecycleHook{LabelsHandler: map[string]string{hook: "true"}}, pod) && !p.ignoresHook:
			if state := string(pub.LifecycleStatePreparingDelete); pod.Labels[pub.LifecycleStateKey] != state {
				out.Patches = append(out.Patches, planning.PodPatch{Pod: pod, Labels: map[string]*string{pub.LifecycleStateKey: &state}})
			}
		default:
			out.Deletes = append(out.Deletes, planning.PodDelete{Pod: pod, Reason: "ScaleIn"})
		}
	}
	// A status that depends on time: the pods that have been ready for 30 s.
	available := int32(0)
	for _, pod := range active {
		ok, left := planning.Available(pod, 30*time.Second, view.Now)
		if ok {
			available++
		} else if left > 0 && !p.noRequeue && (out.RequeueAfter == 0 || left < out.RequeueAfter) {
			out.RequeueAfter = left
		}
	}
	out.Status = func([]planning.Failure) Object {
		next := set.DeepCopy()
		next.Status.PodSerial, next.Status.AvailableReplicas = serial, available
		if p.clockInStatus {
			next.Status.CurrentRevision = view.Now.String()
		}
		return next
	}
	return out, nil
}

func toyPod(set *appsv1alpha1.CloneSet, name string, serial int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: name, Labels: map[string]string{"app": "a", pub.LifecycleStateKey: string(pub.LifecycleStateNormal), hook: "true"},
			Annotations:     map[string]string{appsv1alpha1.PodSerialAnnotationKey: strconv.FormatInt(serial, 10)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
}

func toyConfig(p *toy) Config {
	replicas := func(s Object) int { return int(*s.(*appsv1alpha1.CloneSet).Spec.Replicas) }
	scale := func(w *World) string {
		n := int32(w.Rand.IntN(6))
		w.EditSet(func(o Object) { o.(*appsv1alpha1.CloneSet).Spec.Replicas = &n })
		return fmt.Sprint(n)
	}
	return Config{
		Planner: p,
		New: func(*rand.Rand) Object {
			three := int32(3)
			return &appsv1alpha1.CloneSet{
				TypeMeta:   metav1.TypeMeta{APIVersion: appsv1alpha1.GroupVersion().String(), Kind: "CloneSet"},
				ObjectMeta: metav1.ObjectMeta{Name: "toy"},
				Spec:       appsv1alpha1.CloneSetSpec{Replicas: &three},
			}
		},
		Users:     []User{{Name: "scale", Weight: 3, Do: scale}, KillPod(1), EvictPod(1), Quota(1), LabelPod(1, "x", "", "1")},
		HookLabel: hook,
		Invariants: []Invariant{
			HooksHold(func(Object) *pub.LifecycleHook {
				return &pub.LifecycleHook{LabelsHandler: map[string]string{hook: "true"}}
			}),
			NoOrphan(func(Object) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": "a"}) }),
			Identity("serial", func(p *corev1.Pod) string { return p.Annotations[appsv1alpha1.PodSerialAnnotationKey] }),
		},
		Rest: func(s *State) error {
			n := 0
			for _, p := range s.Pods {
				if planning.Active(p) {
					n++
				}
			}
			set := s.Set.(*appsv1alpha1.CloneSet)
			if n != replicas(set) || int(set.Status.AvailableReplicas) != n {
				return fmt.Errorf("%d pods, %d available, want %d", n, set.Status.AvailableReplicas, replicas(set))
			}
			return nil
		},
	}
}

func FuzzToy(f *testing.F) {
	Fuzz(f, 60, func(uint64) Config { return toyConfig(&toy{}) })
}

func TestMistakesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		toy  toy
		want string
	}{
		"names that change between two steps":         {toy{randomNames: true}, "have the same serial"},
		"deletion of a pod that a hook holds":         {toy{ignoresHook: true}, "that the hook preDelete holds"},
		"no requeue for a time that passes":           {toy{noRequeue: true}, "at rest:"},
		"a status that changes although nothing does": {toy{clockInStatus: true}, "a new leader writes at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 50; seed++ {
				err := Run(seed, toyConfig(&toy{
					randomNames: test.toy.randomNames, ignoresHook: test.toy.ignoresHook,
					noRequeue: test.toy.noRequeue, clockInStatus: test.toy.clockInStatus,
				}))
				if err == nil {
					continue
				}
				if !strings.Contains(err.Error(), test.want) {
					t.Fatalf("error %v, want one that contains %q", err, test.want)
				}
				if again := Run(seed, toyConfig(&toy{
					randomNames: test.toy.randomNames, ignoresHook: test.toy.ignoresHook,
					noRequeue: test.toy.noRequeue, clockInStatus: test.toy.clockInStatus,
				})); again == nil || again.Error() != err.Error() {
					t.Fatalf("the second run of seed %d differs:\n%v\nfirst:\n%v", seed, again, err)
				}
				return
			}
			t.Error("the model does not find the mistake in 50 seeds")
		})
	}
}
