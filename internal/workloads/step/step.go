// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step contains what the planners of sets with revisions share: the revisions of a step, the
// templates that they record, the pods that are created from them, and how pods are updated in place.
package step

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// defaultHistory is the default of revisionHistoryLimit.
const defaultHistory = 10

// ClaimRecheck is when a pod that waits for the end of a claim is looked at again: the end of a claim does
// not cause a step.
const ClaimRecheck = time.Second

// Set is what a step reads of a set of any kind.
type Set struct {
	planning.Parts
	// Object is the set, and Kind its kind.
	Object metav1.Object
	Kind   schema.GroupVersionKind
	// Hooks are the hooks of the set, nil if it has none.
	Hooks *pub.Lifecycle
	// InPlace are the parameters of updates in place, nil if the set has none.
	InPlace *pub.InPlaceUpdateStrategy
	// Gated is whether new pods get the readiness gate of updates in place, which costs a write to the status of each.
	Gated bool
	// RevisionHistoryLimit, CurrentRevision and CollisionCount are the fields of the set.
	RevisionHistoryLimit, CollisionCount *int32
	CurrentRevision                      string
	// InUse are the hashes of the revisions of pods that are not in planning.Input.
	InUse map[string]bool
	// FailedUpdate is the type of the condition about updates that fail.
	FailedUpdate string
	// LabelRevisions is that of the revisions' owner.
	LabelRevisions bool
}

// Step is a step while it is planned.
type Step struct {
	planning.Input
	// Selector is that of the set.
	Selector labels.Selector
	// Hooks are those of the set, empty if it has none.
	Hooks *pub.Lifecycle
	// History is what becomes of the revisions.
	History revision.Result

	set Set
	// inUse are the names or hashes of the revisions of pods.
	inUse       map[string]bool
	actions     *planning.Actions
	err         error
	stuck       []stuck
	held        guard.Held
	templates   map[string]*corev1.PodTemplateSpec
	claims      map[string][]corev1.PersistentVolumeClaim
	differences map[[2]string]*inplace.Difference
}

// New returns the step of the set, and decides what becomes of its revisions. Revisions of all pods are
// kept, also of pods that are about to be released. The actions are those of the step; New does not change
// them. It fails if the selector or a revision is invalid.
func New(set Set, in planning.Input, actions *planning.Actions) (*Step, error) {
	s := &Step{
		Input: in, Hooks: cmp.Or(set.Hooks, &pub.Lifecycle{}), set: set, actions: actions, held: guard.Held{},
		templates: map[string]*corev1.PodTemplateSpec{}, claims: map[string][]corev1.PersistentVolumeClaim{}, differences: map[[2]string]*inplace.Difference{},
	}
	var err error
	if s.Selector, err = metav1.LabelSelectorAsSelector(set.Selector); err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	inUse := make(map[string]bool)
	maps.Copy(inUse, set.InUse)
	for _, pod := range in.Pods {
		if hash := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; hash != "" {
			inUse[hash] = true
		}
	}
	s.inUse = inUse
	s.History, err = revision.Plan(revision.Owner{
		Object: set.Object, Kind: set.Kind, Template: set.Template, Encoder: in.Encoder,
		CollisionCount: ptr.Deref(set.CollisionCount, 0), CurrentRevision: set.CurrentRevision, Labeled: set.LabelRevisions, Now: in.Now,
	}, in.Revisions, int(ptr.Deref(set.RevisionHistoryLimit, defaultHistory)), inUse)
	if err == nil && s.Begins() {
		err = revision.RecordClaims(s.History.Update, set.Claims)
	}
	return s, err
}

// Begins reports whether the update revision is new, or becomes the update revision again. The step writes it, so that
// more can be recorded in it.
func (s *Step) Begins() bool {
	rev := s.History.Update
	return !slices.ContainsFunc(s.Revisions, func(old *appsv1.ControllerRevision) bool {
		return old.Name == rev.Name && old.Revision == rev.Revision
	})
}

// ClaimTemplates returns the templates of the claims of pods of the revision, which may be nil if it does not exist.
func (s *Step) ClaimTemplates(rev *appsv1.ControllerRevision) []corev1.PersistentVolumeClaim {
	if rev == nil || rev == s.History.Update {
		return s.set.Claims
	}
	if s.claims[rev.Name] == nil {
		s.claims[rev.Name] = revision.Claims(rev, s.set.Claims)
	}
	return s.claims[rev.Name]
}

// WriteRevisions adds the changes of revisions to the actions.
func (s *Step) WriteRevisions() {
	s.actions.CreateRevision = s.History.Create
	s.actions.UpdateRevisions = s.History.UpdateRevisions
	s.actions.DeleteRevisions = s.History.Delete
}

// After requests the next step at the latest after the time. Zero and negative times are ignored.
func (s *Step) After(d time.Duration) {
	s.actions.RequeueAfter = earliest.Wait(s.actions.RequeueAfter, d)
}

// Event adds an event about a pod, see planning.PodEvent.
func (s *Step) Event(reason, pod, one, many string) {
	s.actions.Events = planning.AddEvent(s.actions.Events, planning.PodEvent(reason, one, many, pod))
}

// StartInPlace returns the patch that starts to update the pod in place, and adds the event.
func (s *Step) StartInPlace(pod *corev1.Pod, change *inplace.Change, target inplace.Target) *planning.PodPatch {
	s.actions.Events = planning.AddEvent(s.actions.Events, planning.StartedInPlace(pod.Name, target.Revision))
	return lifecycle.Enter(pod, pub.LifecycleStateUpdating, s.Hooks, s.Now).Merge(inplace.Start(pod, change, target, s.Now))
}

// Err returns the first error of a revision that the step needed and that cannot be decoded. What the step
// has decided then is not what it should be.
func (s *Step) Err() error { return s.err }

// template returns the template of the revision, decoded once per step. It is empty after an error.
func (s *Step) template(rev *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	if rev == s.History.Update {
		return s.set.Template
	}
	if s.templates[rev.Name] == nil {
		template, err := revision.Template(rev)
		if err != nil {
			s.err, template = cmp.Or(s.err, err), &corev1.PodTemplateSpec{}
		}
		s.templates[rev.Name] = template
	}
	return s.templates[rev.Name]
}

// ungated is why a pod is not updated in place that was created without the readiness gate.
const ungated = "the pod does not have the readiness gate " + string(pub.InPlaceUpdateReady)

// Change returns how the pod is updated in place to the revision, nil if that is not possible, and why
// not. Except for containers that need not be out of service, a container is restarted only in a pod with the readiness
// gate, which takes the pod out of service before, and keeps it so until the new image runs.
func (s *Step) Change(pod *corev1.Pod, wanted *appsv1.ControllerRevision) (*inplace.Change, string) {
	rev := revision.Of(pod, s.History.All)
	if rev == nil {
		return nil, fmt.Sprintf("revision %q of the pod does not exist", pod.Labels[appsv1.ControllerRevisionHashLabelKey])
	}
	both := [2]string{rev.Name, wanted.Name}
	if s.differences[both] == nil {
		s.differences[both] = inplace.Between(s.template(rev), s.template(wanted))
	}
	change, why := s.differences[both].Decide(pod)
	if change != nil && change.TakesDown(pod) && !planning.HasGate(pod, pub.InPlaceUpdateReady) {
		return nil, ungated
	}
	return change, why
}

// NewPod returns a complete pod of the revision: no further write follows, except the first one of the
// conditions of its readiness gates. The labels are added to those of the template.
func (s *Step) NewPod(rev *appsv1.ControllerRevision, name string, labels map[string]string) *corev1.Pod {
	template := s.template(rev)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.set.Object.GetNamespace(), Name: name,
			Labels: map[string]string{}, Annotations: map[string]string{},
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.set.Object, s.set.Kind)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	maps.Copy(pod.Labels, template.Labels)
	maps.Copy(pod.Annotations, template.Annotations)
	maps.Copy(pod.Labels, labels)
	if s.set.Gated {
		planning.AddGate(&pod.Spec, pub.InPlaceUpdateReady)
	}
	lifecycle.Create(pod, s.Hooks, s.Now)
	mount(pod, s.ClaimTemplates(rev))
	return pod
}

// mount adds the volumes of the claims to a new pod. They replace volumes of the same name.
func mount(pod *corev1.Pod, claims []corev1.PersistentVolumeClaim) {
	if len(claims) == 0 {
		return
	}
	volumes := make([]corev1.Volume, len(claims), len(claims)+len(pod.Spec.Volumes))
	for i := range claims {
		volumes[i] = corev1.Volume{Name: claims[i].Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: ClaimName(&claims[i], pod.Name)},
		}}
	}
	pod.Spec.Volumes = append(volumes, slices.DeleteFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return slices.ContainsFunc(claims, func(c corev1.PersistentVolumeClaim) bool { return c.Name == volume.Name })
	})...)
}

// ClaimName returns the name of the claim of a template and a pod.
func ClaimName(template *corev1.PersistentVolumeClaim, pod string) string {
	return template.Name + "-" + pod
}

// NewClaim returns the claim of the template for the pod with the name, without owners.
func (s *Step) NewClaim(template *corev1.PersistentVolumeClaim, pod string) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Namespace, claim.Name = s.set.Object.GetNamespace(), ClaimName(template, pod)
	claim.Labels = map[string]string{}
	maps.Copy(claim.Labels, template.Labels)
	maps.Copy(claim.Labels, s.set.Selector.MatchLabels)
	claim.OwnerReferences, claim.Status = nil, corev1.PersistentVolumeClaimStatus{}
	return claim
}

// SetConditions sets the conditions that all kinds share, given those before the step: about pods that are
// terminating for too long, and about markers that write labels of the selector. New pods wait for the names
// or the claims of the terminating pods.
func (s *Step) SetConditions(conditions *planning.Conditions, before planning.Conditions, terminating []*corev1.Pod) {
	message, next := planning.Overdue(terminating, s.Now)
	s.After(next)
	if message != "" && !before.True(planning.DeletionOverdue) {
		s.actions.StatusEvents = append(s.actions.StatusEvents, planning.Event{
			Type: corev1.EventTypeWarning, Reason: planning.DeletionOverdue, Sentence: message,
		})
	}
	conditions.Set(planning.DeletionOverdue, planning.StillTerminating, message, s.Now)
	message = ""
	if keys := planning.MarkedKeys(s.set.Selector, s.Markers); len(keys) > 0 {
		message = fmt.Sprintf("PodProbeMarkers write labels of the selector: %s. "+
			"The set releases and replaces a pod when such a label changes.", strings.Join(keys, ", "))
	}
	conditions.Set(planning.SelectorMarked, "MarkerWritesSelectorKey", message, s.Now)
	conditions.Set(planning.PodsGuarded, "Guarded", s.held.Message(), s.Now)
	s.reportStuck(conditions, before)
}
