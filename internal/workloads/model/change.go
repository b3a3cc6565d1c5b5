// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// replace makes o a copy of the other object, except for what only the API server sets.
func replace(o, by Object) {
	uid, version, created, deleted := o.GetUID(), o.GetResourceVersion(), o.GetCreationTimestamp(), o.GetDeletionTimestamp()
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(clone(by)).Elem())
	o.SetUID(uid)
	o.SetResourceVersion(version)
	o.SetCreationTimestamp(created)
	o.SetDeletionTimestamp(deleted)
}

// replaceStatus replaces the status only, as a write to the status subresource does.
func replaceStatus(o, by Object) {
	var wanted struct {
		Status json.RawMessage `json:"status,omitempty"`
	}
	if err := json.Unmarshal([]byte(encode(by)), &wanted); err != nil {
		panic(fmt.Sprintf("decode status: %v", err))
	}
	reflect.ValueOf(o).Elem().FieldByName("Status").SetZero()
	text, err := json.Marshal(wanted)
	if err == nil {
		err = json.Unmarshal(text, o)
	}
	if err != nil {
		panic(fmt.Sprintf("encode status: %v", err))
	}
}

func setConditions(pod *corev1.Pod, conditions []corev1.PodCondition) {
	for _, c := range conditions {
		if old := workload.Condition(pod, c.Type); old != nil {
			*old = c
		} else {
			pod.Status.Conditions = append(pod.Status.Conditions, c)
		}
	}
}

// change applies the write of a patch that changes metadata and images.
func (l *leader) change(pod *corev1.Pod, p *workload.PodPatch) {
	pod.Labels = merge(pod.Labels, p.Labels)
	pod.Annotations = merge(pod.Annotations, p.Annotations)
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if image, ok := p.Images[containers[i].Name]; ok {
				containers[i].Image = image
			}
		}
	}
	set := l.view.Set
	switch p.Controller {
	case workload.Adopt:
		if metav1.GetControllerOf(pod) == nil {
			gvk := set.GetObjectKind().GroupVersionKind()
			pod.OwnerReferences = append(pod.OwnerReferences, *metav1.NewControllerRef(set, gvk))
		}
	case workload.Release:
		pod.OwnerReferences = slices.DeleteFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == set.GetUID() })
	case workload.KeepController:
	}
}

func resize(pod *corev1.Pod, resources map[string]corev1.ResourceRequirements) {
	for i := range pod.Spec.Containers {
		if r, ok := resources[pod.Spec.Containers[i].Name]; ok {
			pod.Spec.Containers[i].Resources = r
		}
	}
}

// merge sets keys, or removes those whose value is nil.
func merge(to map[string]string, from map[string]*string) map[string]string {
	if to == nil {
		to = map[string]string{}
	}
	for k, v := range from {
		if v == nil {
			delete(to, k)
		} else {
			to[k] = *v
		}
	}
	return to
}

// summary prints what a step writes.
func summary(s *Step) string {
	text := ""
	add := func(format string, args ...any) { text += fmt.Sprintf(" "+format, args...) }
	if s.CreateRevision != nil {
		add("+revision %s", s.CreateRevision.Name)
	}
	for _, r := range s.UpdateRevisions {
		add("~revision %s=%d", r.Name, r.Revision)
	}
	for _, r := range s.DeleteRevisions {
		add("-revision %s", r.Name)
	}
	for i, claims := range [][]*corev1.PersistentVolumeClaim{s.CreateClaims, s.UpdateClaims, s.ExpandClaims} {
		for _, c := range claims {
			add("%cclaim %s", "+~^"[i], c.Name)
		}
	}
	for _, p := range s.Patches {
		add("~%s(%s)@%s", p.Pod.Name, p.Reason, p.Pod.ResourceVersion)
	}
	for _, d := range s.Deletes {
		add("-%s(%s)@%s", d.Pod.Name, d.Reason, d.Pod.ResourceVersion)
	}
	for _, p := range s.Creates {
		add("+%s[%s]", p.Name, p.Labels["controller-revision-hash"])
	}
	if s.RequeueAfter > 0 {
		add("again after %s", s.RequeueAfter)
	}
	if text == "" {
		return " nothing"
	}
	return text
}
