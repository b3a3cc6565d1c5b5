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
	// Pods is the number of pods that the update reaches and that are not updated. Nodes returns their nodes, in the order of
	// the update. It is called only if jobs may have to be created.
	Pods  int
	Nodes func() []string
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
		s.report(conditions, notNeeded, "The feature gate is off.")
		return
	}
	update := s.History.Update
	images, options, reason, message := s.pulls(r)
	existing := map[string]*v1alpha1.ImagePullJob{}
	for _, job := range s.Pulls {
		existing[job.Name] = job
		if job.DeletionTimestamp == nil && (reason == notNeeded || job.Labels[appsv1.ControllerRevisionHashLabelKey] != revision.Hash(update.Name)) {
			s.actions.DeletePulls = append(s.actions.DeletePulls, job)
		}
	}
	if reason == pulling {
		generation := strconv.FormatInt(s.set.Object.GetGeneration(), 10)
		created := update.Labels[v1alpha1.PreDownloadCreatedKey] == generation
		if !created && s.createPulls(images, options, r.Nodes(), existing) && update != s.History.Create {
			s.label(update, generation)
		}
		reason, message = s.progress(images, existing, created)
	}
	s.report(conditions, reason, message)
}

// createPulls creates the jobs that do not exist, and deletes those that do not pull on all nodes, so that the next step
// creates them again. It reports whether all jobs exist.
func (s *Step) createPulls(images []newImage, options pullOptions, nodes []string, existing map[string]*v1alpha1.ImagePullJob) bool {
	complete := true
	for _, image := range images {
		job := s.newPull(image, nodes, options)
		switch pull := existing[job.Name]; {
		case pull == nil:
			s.actions.CreatePulls = append(s.actions.CreatePulls, job)
		case pull.DeletionTimestamp != nil: // It is created when this one is gone.
		case !covers(pull, job):
			s.actions.DeletePulls = append(s.actions.DeletePulls, pull)
		default:
			continue
		}
		complete = false
	}
	return complete
}

// progress returns what becomes of the jobs. One that was created and does not exist was deleted after its time.
func (s *Step) progress(images []newImage, existing map[string]*v1alpha1.ImagePullJob, created bool) (reason, message string) {
	ended, failed := 0, int32(0)
	for _, image := range images {
		job := existing[s.pullName(image)]
		if job == nil {
			if created {
				ended++
			}
			continue
		}
		if refused := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ImagePullJobPullsCreated); refused != nil && refused.Status == metav1.ConditionFalse {
			return planning.PullsRefused, fmt.Sprintf("ImagePullJob %s: %s", job.Name, refused.Message)
		}
		failed += job.Status.Failed
		if job.Status.CompletionTime != nil {
			ended++
		}
	}
	switch {
	case ended < len(images):
		return pulling, fmt.Sprintf("Images are pulled before the update: %d of %d jobs have ended.", ended, len(images))
	case failed > 0:
		return pulled, fmt.Sprintf("Jobs have ended. %d pulls have failed: see the ImagePullJobs.", failed)
	default:
		return pulled, "Jobs have pulled the images of the update."
	}
}

// report sets the condition. A set without it does not get one that says that nothing is needed. One that says that a job was
// refused stays while the job is created again.
func (s *Step) report(conditions *planning.Conditions, reason, message string) {
	current := conditions.Find(planning.PreDownloading)
	if current == nil && reason == notNeeded || current != nil && current.Reason == planning.PullsRefused && len(s.actions.CreatePulls) > 0 {
		return
	}
	status := corev1.ConditionFalse
	if reason == pulling {
		status = corev1.ConditionTrue
	}
	conditions.Put(planning.SetCondition{Type: planning.PreDownloading, Status: status, Reason: reason, Message: message}, s.Now)
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

// pulls returns the images that jobs pull for the update, and otherwise why none do.
func (s *Step) pulls(r Rollout) (images []newImage, options pullOptions, reason, message string) {
	options, err := pullOptionsOf(s.set.Object.GetAnnotations(), s.set.InPlace, r.Total)
	if err != nil {
		return nil, options, badAnnotation, err.Error()
	}
	if r.Pods > 0 {
		images = s.newImages()
	}
	switch {
	case r.Pods == 0:
		return nil, options, notNeeded, "No pod is to be updated."
	case len(images) == 0 || r.Sample != nil && !s.updatesInPlace(r.Sample):
		return nil, options, notNeeded, "No image changes, or pods are recreated."
	case r.Pods == r.Total && r.AtOnce >= r.Total:
		return nil, options, notNeeded, "One step updates all pods."
	case r.UpdatedReady < options.minUpdatedReady:
		return nil, options, tooFew, fmt.Sprintf("Images are pulled when %d updated pods are ready: %d are.", options.minUpdatedReady, r.UpdatedReady)
	}
	return images, options, pulling, ""
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
	containersOf := func(spec *corev1.PodSpec) []corev1.Container {
		return slices.Concat(spec.InitContainers, spec.Containers)
	}
	seen := sets.New[string]()
	for _, old := range s.History.All {
		if old == s.History.Update || !s.inUse[old.Name] && !s.inUse[revision.Hash(old.Name)] {
			continue
		}
		had := sets.New[string]()
		for _, container := range containersOf(&s.template(old).Spec) {
			had.Insert(container.Image)
		}
		for _, container := range containersOf(&s.set.Template.Spec) {
			if !had.Has(container.Image) && !seen.Has(container.Image) {
				seen.Insert(container.Image)
				images = append(images, newImage{container: container.Name, image: container.Image})
			}
		}
	}
	return images
}

// pullName returns the name of the job of an image.
func (s *Step) pullName(image newImage) string { return s.History.Update.Name + "-" + image.container }

// newPull returns the job of an image. Its labels are those of the template, as those of all objects of the set.
func (s *Step) newPull(image newImage, nodes []string, options pullOptions) *v1alpha1.ImagePullJob {
	template := s.set.Template
	job := &v1alpha1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.set.Object.GetNamespace(), Name: s.pullName(image), Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.set.Object, s.set.Kind)},
		},
		Spec: v1alpha1.ImagePullJobSpec{
			Image: image.image, Selector: &v1alpha1.ImagePullJobNodeSelector{Names: nodes}, Parallelism: &options.parallelism,
			PullPolicy:       &v1alpha1.ImagePullJobPullPolicy{BackoffLimit: new(int32(pullBackoff)), TimeoutSeconds: &options.timeout},
			CompletionPolicy: v1alpha1.ImagePullJobCompletionPolicy{Type: v1alpha1.CompleteAlways, TTLSecondsAfterFinished: new(int32(pullTTL))},
		},
	}
	metav1.SetMetaDataLabel(&job.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, revision.Hash(s.History.Update.Name))
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
