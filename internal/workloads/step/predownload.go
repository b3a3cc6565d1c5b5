// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// Rollout is the update of a set, for the pulls of its images.
type Rollout struct {
	// Nodes are the nodes of the pods that the update reaches and that are not updated, in the order of the update.
	Nodes []string
	// Sample is a pod that is to be updated, for a set that pulls images only for updates in place. It is nil for others.
	Sample *corev1.Pod
	// UpdatedReady is the number of updated pods that are ready, Total that of all pods that should exist, and AtOnce how
	// many pods one step may update.
	UpdatedReady, Total, AtOnce int
}

// The reasons of the condition PreDownloading.
const (
	pulling       = "Pulling"
	pulled        = "Pulled"
	notNeeded     = "NotNeeded"
	tooFew        = "WaitingForUpdatedPods"
	badAnnotation = "InvalidAnnotation"
)

// The defaults of jobs, which are those of OpenKruise.
const (
	pullTimeout = 300
	pullTTL     = 600
	pullBackoff = 1
)

// PreDownload lets ImagePullJobs pull the changed images of the update revision on the nodes that the update reaches, and
// deletes jobs that are no longer needed. The update does not wait for them. Each generation of the set creates jobs once:
// its number is the value of a label of the revision when all jobs exist.
func (s *Step) PreDownload(r Rollout, conditions *planning.Conditions) {
	if !s.Input.PreDownload {
		return
	}
	wanted, reason, message := s.pulls(r)
	update := s.History.Update
	names := map[string]*v1alpha1.ImagePullJob{}
	for _, job := range wanted {
		names[job.Name] = job
	}
	existing := map[string]*v1alpha1.ImagePullJob{}
	for _, job := range s.Input.Pulls {
		existing[job.Name] = job
		if job.DeletionTimestamp == nil && (reason == notNeeded || job.Labels[appsv1.ControllerRevisionHashLabelKey] != revision.Hash(update.Name)) {
			s.actions.DeletePulls = append(s.actions.DeletePulls, job)
		}
	}
	generation := strconv.FormatInt(s.set.Object.GetGeneration(), 10)
	if reason == pulling && update.Labels[v1alpha1.PreDownloadCreatedKey] != generation {
		complete := true
		for _, job := range wanted {
			known := existing[job.Name]
			switch {
			case known == nil:
				s.actions.CreatePulls = append(s.actions.CreatePulls, job)
			case known.DeletionTimestamp == nil && !covers(known, job):
				s.actions.DeletePulls = append(s.actions.DeletePulls, known)
			default:
				continue
			}
			complete = false
		}
		if complete && update != s.History.Create {
			s.label(update, generation)
		}
	}
	if reason == pulling {
		reason, message = progressOf(s.Input.Pulls, names, message)
	}
	s.report(conditions, reason, message)
}

// report sets the condition. A set without it does not get one that says that nothing is needed.
func (s *Step) report(conditions *planning.Conditions, reason, message string) {
	status := corev1.ConditionFalse
	if reason == pulling {
		status = corev1.ConditionTrue
	}
	if reason != notNeeded || conditions.Find(planning.PreDownloading) != nil {
		conditions.Put(planning.SetCondition{Type: planning.PreDownloading, Status: status, Reason: reason, Message: message}, s.Now)
	}
}

// label notes in the update revision that the jobs of the generation exist.
func (s *Step) label(update *appsv1.ControllerRevision, generation string) {
	i := slices.Index(s.actions.UpdateRevisions, update)
	if i < 0 {
		update = update.DeepCopy()
		s.actions.UpdateRevisions = append(s.actions.UpdateRevisions, update)
	}
	metav1.SetMetaDataLabel(&update.ObjectMeta, v1alpha1.PreDownloadCreatedKey, generation)
}

// pulls returns the jobs for the update, and otherwise why there are none.
func (s *Step) pulls(r Rollout) (jobs []*v1alpha1.ImagePullJob, reason, message string) {
	options, err := pullOptionsOf(s.set.Object.GetAnnotations(), r.Total)
	if err != nil {
		return nil, badAnnotation, err.Error()
	}
	images, nodes := s.newImages(), r.Nodes
	switch {
	case len(nodes) == 0:
		return nil, notNeeded, "No pod is to be updated."
	case len(images) == 0 || r.Sample != nil && !s.updatesInPlace(r.Sample):
		return nil, notNeeded, "No image changes, or pods are recreated."
	case len(nodes) == r.Total && r.AtOnce >= r.Total:
		return nil, notNeeded, "One step updates all pods."
	case r.UpdatedReady < options.minUpdatedReady:
		return nil, tooFew, fmt.Sprintf("Images are pulled when %d updated pods are ready: %d are.", options.minUpdatedReady, r.UpdatedReady)
	}
	for _, image := range images {
		jobs = append(jobs, s.newPull(image, nodes, options))
	}
	return jobs, pulling, fmt.Sprintf("Pulling %d images on %d nodes before the update.", len(images), len(nodes))
}

func (s *Step) updatesInPlace(pod *corev1.Pod) bool {
	change, _ := s.Change(pod, s.History.Update)
	return change != nil
}

// NodesOf returns the nodes of the pods, in their order, for Rollout.
func NodesOf(pods []*corev1.Pod) []string {
	var nodes []string
	seen := sets.New("")
	for _, pod := range pods {
		if node := pod.Spec.NodeName; !seen.Has(node) {
			seen.Insert(node)
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// newImage is an image that an old revision does not have, and its first container.
type newImage struct{ container, image string }

// newImages returns the images of the update revision that an old revision of a pod does not have. Init containers and
// native sidecars count.
func (s *Step) newImages() (images []newImage) {
	all := func(spec *corev1.PodSpec) []corev1.Container {
		return slices.Concat(spec.InitContainers, spec.Containers)
	}
	seen := sets.New[string]()
	for _, old := range s.History.All {
		if old == s.History.Update || !s.inUse[old.Name] && !s.inUse[revision.Hash(old.Name)] {
			continue
		}
		had := sets.New[string]()
		for _, container := range all(&s.template(old).Spec) {
			had.Insert(container.Image)
		}
		for _, container := range all(&s.set.Template.Spec) {
			if !had.Has(container.Image) && !seen.Has(container.Image) {
				seen.Insert(container.Image)
				images = append(images, newImage{container: container.Name, image: container.Image})
			}
		}
	}
	return images
}

// newPull returns the job of an image. Its labels are those of the template, as those of all objects of the set.
func (s *Step) newPull(image newImage, nodes []string, options pullOptions) *v1alpha1.ImagePullJob {
	template, update := s.set.Template, s.History.Update.Name
	job := &v1alpha1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.set.Object.GetNamespace(), Name: update + "-" + image.container, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.set.Object, s.set.Kind)},
		},
		Spec: v1alpha1.ImagePullJobSpec{
			Image: image.image, Selector: &v1alpha1.ImagePullJobNodeSelector{Names: nodes}, Parallelism: &options.parallelism,
			PullPolicy:       &v1alpha1.ImagePullJobPullPolicy{BackoffLimit: new(int32(pullBackoff)), TimeoutSeconds: &options.timeout},
			CompletionPolicy: v1alpha1.ImagePullJobCompletionPolicy{Type: v1alpha1.CompleteAlways, TTLSecondsAfterFinished: new(int32(pullTTL))},
		},
	}
	metav1.SetMetaDataLabel(&job.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, revision.Hash(update))
	for _, secret := range template.Spec.ImagePullSecrets {
		job.Spec.PullSecrets = append(job.Spec.PullSecrets, secret.Name)
	}
	if account := template.Spec.ServiceAccountName; account != "" {
		metav1.SetMetaDataAnnotation(&job.ObjectMeta, v1alpha1.ServiceAccountKey, account)
	}
	return job
}

// covers reports whether the job pulls on all nodes of the other one.
func covers(job, wanted *v1alpha1.ImagePullJob) bool {
	return job.Spec.Selector != nil && job.Spec.Image == wanted.Spec.Image && sets.New(job.Spec.Selector.Names...).HasAll(wanted.Spec.Selector.Names...)
}

// progressOf returns what becomes of the wanted jobs.
func progressOf(jobs []*v1alpha1.ImagePullJob, wanted map[string]*v1alpha1.ImagePullJob, message string) (string, string) {
	ended := 0
	for _, job := range jobs {
		if wanted[job.Name] == nil {
			continue
		}
		if refused := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ImagePullJobPullsCreated); refused != nil && refused.Status == metav1.ConditionFalse {
			return planning.PullsRefused, fmt.Sprintf("ImagePullJob %s: %s", job.Name, refused.Message)
		}
		if job.Status.CompletionTime != nil {
			ended++
		}
	}
	if ended == len(wanted) {
		return pulled, "The images of the update were pulled."
	}
	return pulling, message
}
