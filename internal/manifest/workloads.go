// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// legacyJobNameLabel is the label that Jobs set before it got a prefix, and still set.
const legacyJobNameLabel = "job-name"

func (r *reader) replicaSet(at location, s *appsv1.ReplicaSet) {
	if !r.named(at, s) {
		return
	}
	r.checkFields(at, s, deploymentFields())
	r.workload(at, workload{meta: &s.ObjectMeta, replicas: s.Spec.Replicas, selector: s.Spec.Selector, template: &s.Spec.Template})
}

// daemonSet adds one pod, because the machine is one node.
func (r *reader) daemonSet(at location, d *appsv1.DaemonSet) {
	if !r.named(at, d) {
		return
	}
	r.checkFields(at, d, statefulSetFields())
	r.workload(at, workload{meta: &d.ObjectMeta, selector: d.Spec.Selector, template: &d.Spec.Template, fixed: true})
}

func (r *reader) job(at location, j *batchv1.Job) {
	if !r.named(at, j) {
		return
	}
	r.checkFields(at, j, merge(names("apiVersion", "kind", "metadata", "status"), fieldTree{"spec": jobSpecFields()}))
	r.jobPods(at, &j.ObjectMeta, &j.Spec, field.NewPath("spec"))
}

// cronJob adds the pods of one job.
func (r *reader) cronJob(at location, c *batchv1.CronJob) {
	if !r.named(at, c) {
		return
	}
	r.checkFields(at, c, cronJobFields())
	r.jobPods(at, &c.ObjectMeta, &c.Spec.JobTemplate.Spec, field.NewPath("spec", "jobTemplate", "spec"))
}

// jobPods adds as many pods of a job as run at the same time.
func (r *reader) jobPods(at location, meta *metav1.ObjectMeta, spec *batchv1.JobSpec, path *field.Path) {
	pods := int32(1)
	if spec.Parallelism != nil {
		pods = *spec.Parallelism
	}
	count := "parallelism"
	if spec.Completions != nil && *spec.Completions < pods {
		pods, count = *spec.Completions, "completions"
	}
	template := spec.Template.DeepCopy()
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	template.Labels[batchv1.JobNameLabel] = meta.Name
	template.Labels[legacyJobNameLabel] = meta.Name
	r.workload(at, workload{meta: meta, replicas: &pods, template: template, fixed: true, job: true, path: path, count: count})
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
			command, given := r.options.Commands[containers[i].Name]
			if given {
				// References are expanded later. $$ stands for a $ of the shell.
				escaped := strings.ReplaceAll(command, "$", "$$")
				containers[i].Command, containers[i].Args = []string{"sh", "-c", escaped}, nil
				r.commanded[containers[i].Name] = true
			}
		}
	}
}
