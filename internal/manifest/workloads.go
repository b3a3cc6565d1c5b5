// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// legacyJobNameLabel is the label that Jobs set before it got a prefix, and still set.
const legacyJobNameLabel = "job-name"

// builtIn returns the workload that a built-in object declares. A DaemonSet has one pod, because the
// machine is one node, and a CronJob those of one job.
func builtIn(object runtime.Object) workload {
	w := workload{path: field.NewPath("spec"), ids: ordinals(0)}
	switch o := object.(type) {
	case *appsv1.Deployment:
		w.meta, w.replicas, w.selector, w.template = &o.ObjectMeta, o.Spec.Replicas, o.Spec.Selector, &o.Spec.Template
	case *appsv1.ReplicaSet:
		w.meta, w.replicas, w.selector, w.template = &o.ObjectMeta, o.Spec.Replicas, o.Spec.Selector, &o.Spec.Template
	case *appsv1.StatefulSet:
		w.meta, w.replicas, w.selector, w.template = &o.ObjectMeta, o.Spec.Replicas, o.Spec.Selector, &o.Spec.Template
		w.identify, w.claims = identifyOrdinal, o.Spec.VolumeClaimTemplates
		if o.Spec.Ordinals != nil {
			w.ids = ordinals(int(o.Spec.Ordinals.Start))
		}
	case *appsv1.DaemonSet:
		w.meta, w.selector, w.template, w.fixed = &o.ObjectMeta, o.Spec.Selector, &o.Spec.Template, true
	case *batchv1.Job:
		w.meta = &o.ObjectMeta
		w.runJob(&o.Spec)
	case *batchv1.CronJob:
		w.meta, w.path = &o.ObjectMeta, w.path.Child("jobTemplate", "spec")
		w.runJob(&o.Spec.JobTemplate.Spec)
	}
	return w
}

// runJob sets as many pods of a job as run at the same time.
func (w *workload) runJob(spec *batchv1.JobSpec) {
	pods := int32(1)
	if spec.Parallelism != nil {
		pods = *spec.Parallelism
	}
	w.count = "parallelism"
	if spec.Completions != nil && *spec.Completions < pods {
		pods, w.count = *spec.Completions, "completions"
	}
	w.replicas, w.template, w.fixed, w.job = &pods, spec.Template.DeepCopy(), true, true
	if w.template.Labels == nil {
		w.template.Labels = map[string]string{}
	}
	w.template.Labels[batchv1.JobNameLabel], w.template.Labels[legacyJobNameLabel] = w.meta.Name, w.meta.Name
}

// withClaims adds a volume for each claim that a workload creates for a pod. It replaces a
// volume of the template with the same name, as the StatefulSet controller does.
func withClaims(pod *corev1.Pod, claims []corev1.PersistentVolumeClaim) {
	for i := range claims {
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claims[i].Name })
		source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claims[i].Name + "-" + pod.Name}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: claims[i].Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source},
		})
	}
}

// prepare sets the defaults of a pod, and the commands of the options.
func (r *reader) prepare(pod *corev1.Pod) {
	setDefaults(pod)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			r.command(&containers[i])
		}
	}
}

// command sets the command of the options, if the container has one.
func (r *reader) command(container *corev1.Container) {
	command, given := r.options.Commands[container.Name]
	if !given {
		return
	}
	// References are expanded later. $$ stands for a $ of the shell.
	escaped := strings.ReplaceAll(command, "$", "$$")
	container.Command, container.Args = []string{"sh", "-c", escaped}, nil
	r.commanded[container.Name] = true
}
