// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// PodTrimmer trims the pods of a cache. Pods with equal labels, containers or other fields share
// them, so they must not be modified. It is safe for concurrent use.
type PodTrimmer struct {
	options Options
	parser  *mark.Parser
	// texts are labels and annotations.
	texts      *pool[map[string]string]
	containers *pool[[]corev1.Container]
	conditions *pool[[]corev1.PodCondition]
	managed    *pool[[]metav1.ManagedFieldsEntry]
	// controllers is nil if trimmed pods have no controller.
	controllers *pool[[]metav1.OwnerReference]
	// agents is the namespace of the agents.
	agents string
	// statuses is whether trimmed pods keep their conditions and the statuses of their containers.
	statuses bool
}

// NewPodTrimmer returns a trimmer for the views with the options.
func NewPodTrimmer(options Options) *PodTrimmer {
	return &PodTrimmer{
		options:    options,
		parser:     mark.NewParser(),
		texts:      newPool[map[string]string](),
		containers: newPool[[]corev1.Container](),
		conditions: newPool[[]corev1.PodCondition](),
		managed:    newPool[[]metav1.ManagedFieldsEntry](),
	}
}

// WithControllers makes trimmed pods keep the group, the kind, the name and the UID of their controller, which only
// clients show. It returns the trimmer.
func (t *PodTrimmer) WithControllers() *PodTrimmer {
	t.controllers = newPool[[]metav1.OwnerReference]()
	return t
}

// WithStatuses makes trimmed pods keep all conditions and the statuses of their containers, about 1 KiB for each container. It
// returns the trimmer.
func (t *PodTrimmer) WithStatuses() *PodTrimmer {
	t.statuses = true
	return t
}

// WithAgents makes trimmed pods of the agent in the namespace keep what outages are decided from. It
// returns the trimmer.
func (t *PodTrimmer) WithAgents(namespace string) *PodTrimmer {
	t.agents = namespace
	return t
}

// Trim returns a pod with only the fields that views are built from, and those that identify the
// pod.
func (t *PodTrimmer) Trim(pod *corev1.Pod) *corev1.Pod {
	owned, err := t.parser.Owned(pod)
	if err != nil {
		// The controller that reads the marks gets the same error and reports it.
		owned = nil
	}
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			Namespace:         intern(pod.Namespace),
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			Labels:            t.sharedTexts(pod.Labels),
			Annotations:       t.sharedTexts(t.trimAnnotations(pod, owned)),
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
			ManagedFields:     t.trimManagedFields(pod),
			OwnerReferences:   t.trimOwners(pod),
		},
		Spec: corev1.PodSpec{
			NodeName:       intern(pod.Spec.NodeName),
			Containers:     t.trimContainers(pod, pod.Spec.Containers, func(*corev1.Container) bool { return true }),
			InitContainers: t.trimContainers(pod, pod.Spec.InitContainers, plan.Restartable),
		},
		Status: corev1.PodStatus{
			Phase: intern(pod.Status.Phase), PodIP: pod.Status.PodIP, StartTime: pod.Status.StartTime, Conditions: t.trimConditions(pod, owned),
		},
	}
	if plan.HasRun(pod) && (pod.Status.PodIP == "" || !plan.Initialized(pod)) {
		trimmed.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
	}
	if t.statuses {
		trimmed.Status.Conditions = pod.Status.Conditions
		trimmed.Status.ContainerStatuses, trimmed.Status.InitContainerStatuses = pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses
	}
	if IsAgent(pod, t.agents) {
		keepAgent(trimmed, pod)
	}
	return trimmed
}

// sharedTexts returns the shared copy of a map.
func (t *PodTrimmer) sharedTexts(texts map[string]string) map[string]string {
	if len(texts) == 0 {
		return nil
	}
	return t.texts.share(appendMap(nil, texts), texts)
}

// trimOwners keeps the controller, if the trimmer is to keep it.
func (t *PodTrimmer) trimOwners(pod *corev1.Pod) []metav1.OwnerReference {
	controller := metav1.GetControllerOfNoCopy(pod)
	if t.controllers == nil || controller == nil {
		return nil
	}
	key := appendString(appendString(appendString(nil, controller.APIVersion), controller.Kind), controller.Name)
	return t.controllers.share(appendString(key, string(controller.UID)), []metav1.OwnerReference{{
		APIVersion: controller.APIVersion, Kind: controller.Kind, Name: controller.Name, UID: controller.UID, Controller: controller.Controller,
	}})
}

// trimAnnotations keeps the annotations that are marks, those that identify a static pod, and the
// keys of all others, because a marker may declare them. If providers probe pods, it also keeps the
// annotations for providers.
func (t *PodTrimmer) trimAnnotations(pod *corev1.Pod, owned mark.Marks) map[string]string {
	if len(pod.Annotations) == 0 {
		return nil
	}
	kept := plan.RuntimeAnnotations()
	if t.options.Serverless {
		kept = append(kept, v1alpha1.PodProbeMarkerAnnotationKey, v1alpha1.PodProbeMarkerListAnnotationKey)
	}
	trimmed := make(map[string]string, len(pod.Annotations))
	for name, value := range pod.Annotations {
		if !owned.Has(mark.Annotation(name)) && !slices.Contains(kept, name) {
			value = ""
		}
		trimmed[name] = value
	}
	return trimmed
}

// maxStartupBytes is the maximum size of a startup probe that the cache keeps.
const maxStartupBytes = 16 << 10

// trimStartup returns the startup probe of a container, or nil, with the time that the container has
// to end. One that is too large has no handler, so that probes that wait for it are not planned.
func trimStartup(pod *corev1.Pod, c *corev1.Container) (startup *corev1.Probe, text []byte) {
	if c.StartupProbe == nil {
		return nil, nil
	}
	whole := *c.StartupProbe
	whole.TerminationGracePeriodSeconds = cmp.Or(whole.TerminationGracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds)
	// The types of a pod always encode.
	if text, _ = json.Marshal(&whole); len(text) > maxStartupBytes {
		whole.ProbeHandler = corev1.ProbeHandler{}
		text, _ = json.Marshal(&whole)
	}
	return &whole, text
}

// trimContainers keeps the names, the named ports and the startup probes of the containers.
func (t *PodTrimmer) trimContainers(pod *corev1.Pod, containers []corev1.Container, keep func(*corev1.Container) bool) []corev1.Container {
	var key []byte
	var trimmed []corev1.Container
	for i := range containers {
		c := &containers[i]
		if !keep(c) {
			continue
		}
		small := corev1.Container{Name: c.Name}
		key = appendString(key, c.Name)
		if c.RestartPolicy != nil {
			small.RestartPolicy = c.RestartPolicy
			key = appendString(append(key, 'r'), *c.RestartPolicy)
		}
		for j := range c.Ports {
			if p := &c.Ports[j]; p.Name != "" {
				small.Ports = append(small.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort})
				key = appendString(append(key, 'p'), p.Name)
				key = binary.BigEndian.AppendUint32(key, uint32(p.ContainerPort))
			}
		}
		if startup, text := trimStartup(pod, c); startup != nil {
			small.StartupProbe = startup
			key = appendString(append(key, 's'), string(text))
		}
		key = append(key, '.')
		trimmed = append(trimmed, small)
	}
	if trimmed == nil {
		return nil
	}
	return t.containers.share(key, slices.Clip(trimmed))
}

// trimConditions keeps the conditions that are marks, and whether the pod is initialized. If
// providers probe pods, it also keeps all conditions that a provider may write.
func (t *PodTrimmer) trimConditions(pod *corev1.Pod, owned mark.Marks) []corev1.PodCondition {
	var room [8]corev1.PodCondition
	trimmed := room[:0]
	var key []byte
	alike := true
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		provided := t.options.Serverless && !v1alpha1.IsNativePodCondition(c.Type)
		switch {
		case provided || owned.Has(mark.ConditionType(string(c.Type))):
			alike = false
			whole := *c
			whole.Type, whole.Status, whole.Reason = intern(c.Type), intern(c.Status), intern(c.Reason)
			trimmed = append(trimmed, whole)
		case c.Type == corev1.PodInitialized:
			trimmed = append(trimmed, corev1.PodCondition{Type: corev1.PodInitialized, Status: c.Status})
			key = appendString(key, c.Status)
		}
	}
	if len(trimmed) == 0 {
		return nil
	}
	trimmed = append(make([]corev1.PodCondition, 0, len(trimmed)), trimmed...)
	if !alike {
		return trimmed
	}
	return t.conditions.share(key, trimmed)
}

// trimManagedFields keeps the entries that marks depend on, without their times.
func (t *PodTrimmer) trimManagedFields(pod *corev1.Pod) []metav1.ManagedFieldsEntry {
	entries := t.parser.Entries(pod.ManagedFields)
	if len(entries) == 0 {
		return nil
	}
	var key []byte
	for i := range entries {
		e := &entries[i]
		e.Time = nil
		key = appendString(appendString(appendString(key, e.Manager), e.Operation), e.APIVersion)
		key = appendString(appendString(key, e.FieldsType), e.Subresource)
		if e.FieldsV1 != nil {
			key = appendString(append(key, 'f'), string(e.FieldsV1.GetRawBytes()))
		}
		key = append(key, '.')
	}
	return t.managed.share(key, slices.Clip(entries))
}
