// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// podKind returns the kind of the owner of claims that are deleted with their pod.
func podKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Pod") }

// newPod returns the pod of a replica, complete, of the revision.
func (p *planner) newPod(r *replica, rev *appsv1.ControllerRevision) (*corev1.Pod, error) {
	template, err := p.template(rev)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.set.Namespace, Name: r.name, GenerateName: p.set.Name + "-",
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.set, Kind())},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = rev.Name
	maps.Copy(pod.Labels, identity(r))
	pod.Spec.Hostname = r.name
	pod.Spec.Subdomain = p.set.Spec.ServiceName
	p.mountClaims(pod)
	p.prepare(pod)
	return pod, nil
}

// identity returns the labels that identify a replica.
func identity(r *replica) map[string]string {
	return map[string]string{
		appsv1.StatefulSetPodNameLabel: r.name,
		appsv1.PodIndexLabel:           strconv.Itoa(r.ordinal),
	}
}

// mountClaims adds the volumes of the claims to a new pod. They replace volumes of the same name.
func (p *planner) mountClaims(pod *corev1.Pod) {
	templates := p.set.Spec.VolumeClaimTemplates
	if len(templates) == 0 {
		return
	}
	volumes := make([]corev1.Volume, 0, len(templates)+len(pod.Spec.Volumes))
	for i := range templates {
		volumes = append(volumes, corev1.Volume{
			Name: templates[i].Name,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: claimName(templates[i].Name, pod.Name),
			}},
		})
	}
	for i := range pod.Spec.Volumes {
		name := pod.Spec.Volumes[i].Name
		if !slices.ContainsFunc(templates, func(t corev1.PersistentVolumeClaim) bool { return t.Name == name }) {
			volumes = append(volumes, pod.Spec.Volumes[i])
		}
	}
	pod.Spec.Volumes = volumes
}

// template returns the pod template of the revision.
func (p *planner) template(rev *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	if rev == p.revisions.Create {
		return &p.set.Spec.Template, nil
	}
	if template := p.templates[rev.Name]; template != nil {
		return template, nil
	}
	template, err := revision.Template(rev)
	if err == nil {
		p.templates[rev.Name] = template
	}
	return template, err
}

// identify restores the labels of a replica that another client changed. A pod without the index is of
// a controller that does not write it, and stays as it is.
func (p *planner) identify(r *replica) {
	if r.pod.Labels[appsv1.StatefulSetPodNameLabel] != r.name {
		setLabel(p.patch(r.pod, "RestoreIdentity"), appsv1.StatefulSetPodNameLabel, r.name)
	}
	if index := r.pod.Labels[appsv1.PodIndexLabel]; index != "" && index != r.name[len(p.set.Name)+1:] {
		setLabel(p.patch(r.pod, "RestoreIdentity"), appsv1.PodIndexLabel, strconv.Itoa(r.ordinal))
	}
}

// specifiedDelete reports whether the deletion of the pod is requested by its label.
func specifiedDelete(pod *corev1.Pod) bool {
	_, specified := pod.Labels[pub.SpecifiedDeleteKey]
	return specified
}
