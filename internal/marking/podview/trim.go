// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
)

// Transform returns a transform of a cache that trims the objects of one type. It passes all
// others unchanged, such as the tombstones of deleted objects.
func Transform[T any](trim func(T) T) func(any) (any, error) {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			return trim(typed), nil
		}
		return object, nil
	}
}

// TrimNode returns the metadata of a node with only what views are built from: its identity
// and its kind.
func TrimNode(node *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: node.TypeMeta, ObjectMeta: trimNodeMetadata(&node.ObjectMeta)}
}

// trimNodeMetadata keeps the identity of a node, and the labels that say whether it has an agent.
func trimNodeMetadata(node *metav1.ObjectMeta) metav1.ObjectMeta {
	trimmed := metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}
	for _, label := range serverless.AgentlessLabels() {
		if value, found := node.Labels[label.Key]; found {
			metav1.SetMetaDataLabel(&trimmed, label.Key, value)
		}
	}
	return trimmed
}

// TrimVirtualNode returns a node with only what decides whether a pod may run on it.
func TrimVirtualNode(node *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints},
	}
}

// TransformNode is the transform of a cache of Nodes or of their metadata.
func TransformNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		return TrimNodeReadiness(node), nil
	}
	return Transform(TrimNode)(object)
}

// TrimNodeReadiness returns a node with only what outages are decided from: whether an agent is expected on
// it, and its condition Ready without the heartbeat.
func TrimNodeReadiness(node *corev1.Node) *corev1.Node {
	trimmed := &corev1.Node{ObjectMeta: trimNodeMetadata(&node.ObjectMeta)}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			trimmed.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: intern(c.Status), LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	return trimmed
}

// poolSize is the maximum number of values of a pool. A value is used by all pods of a workload, so
// this is the number of workloads, twice or more because of marks.
const poolSize = 16384

// pool returns one copy of equal values, so that the pods of a workload share their labels and
// containers. It forgets the values that were requested longest ago; pods keep the values that they
// have. It is safe for concurrent use.
type pool[T any] struct{ cache *lru.Cache }

// digest is the hash of a value's bytes. It takes less memory than the bytes.
type digest [sha256.Size]byte

func newPool[T any]() *pool[T] { return &pool[T]{cache: lru.New(poolSize)} }

// share returns the known value that has the bytes, or else the given one.
func (p *pool[T]) share(text []byte, value T) T {
	key := digest(sha256.Sum256(text))
	if known, found := p.cache.Get(key); found {
		return known.(T)
	}
	p.cache.Add(key, value)
	return value
}

// intern returns one copy of equal strings.
func intern[S ~string](s S) S {
	if s == "" {
		return s
	}
	return S(unique.Make(string(s)).Value())
}

// appendString appends a string and its length, so that different sequences of strings never have
// the same bytes.
func appendString[S ~string](key []byte, s S) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}

func appendMap(key []byte, m map[string]string) []byte {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		key = appendString(appendString(key, name), m[name])
	}
	return key
}

// PlanTrimmer trims the NodePodProbes and ProbePlans of a cache. It keeps all of the plan, because a plan
// is compared with the compiled one field by field, but pods with equal probes, which are those of
// a workload, share them. They must not be modified. It is safe for concurrent use.
type PlanTrimmer struct {
	probes *pool[[]v1alpha1.ContainerProbe]
}

// NewPlanTrimmer returns a trimmer.
func NewPlanTrimmer() *PlanTrimmer {
	return &PlanTrimmer{probes: newPool[[]v1alpha1.ContainerProbe]()}
}

// Trim returns a NodePodProbe without the metadata that is not read. Its creation is the last change
// of the plan: see Edited.
func (t *PlanTrimmer) Trim(npp *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
	trimmed := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{
			Name:              npp.Name,
			UID:               npp.UID,
			ResourceVersion:   npp.ResourceVersion,
			Generation:        npp.Generation,
			Annotations:       npp.Annotations,
			CreationTimestamp: metav1.NewTime(Edited(npp)),
			DeletionTimestamp: npp.DeletionTimestamp,
			OwnerReferences:   npp.OwnerReferences,
		},
		Status: npp.Status,
	}
	trimmed.Spec = v1alpha1.NodePodProbeSpec{PodProbes: t.pods(npp.Spec.PodProbes), RemovedPods: npp.Spec.RemovedPods}
	return trimmed
}

// TrimSlice returns a ProbePlan without the metadata that is not read.
func (t *PlanTrimmer) TrimSlice(slice *seamarkv1alpha1.ProbePlan) *seamarkv1alpha1.ProbePlan {
	return &seamarkv1alpha1.ProbePlan{
		ObjectMeta: metav1.ObjectMeta{
			Name:              slice.Name,
			UID:               slice.UID,
			ResourceVersion:   slice.ResourceVersion,
			Generation:        slice.Generation,
			DeletionTimestamp: slice.DeletionTimestamp,
			OwnerReferences:   slice.OwnerReferences,
			Labels:            slice.Labels,
			Annotations:       slice.Annotations,
			Finalizers:        slice.Finalizers,
		},
		NodeName: intern(slice.NodeName),
		Pods:     t.pods(slice.Pods),
	}
}

func (t *PlanTrimmer) pods(stored []v1alpha1.PodProbe) []v1alpha1.PodProbe {
	if stored == nil {
		return nil
	}
	trimmed := make([]v1alpha1.PodProbe, len(stored))
	for i := range stored {
		pod := &stored[i]
		trimmed[i] = v1alpha1.PodProbe{
			Name: pod.Name, Namespace: intern(pod.Namespace), UID: pod.UID, RuntimeUID: pod.RuntimeUID, IP: pod.IP,
			Probes: t.shared(pod.Probes),
		}
	}
	return trimmed
}

// shared returns the shared copy of equal probes.
func (t *PlanTrimmer) shared(probes []v1alpha1.ContainerProbe) []v1alpha1.ContainerProbe {
	if len(probes) == 0 {
		return probes
	}
	text, err := json.Marshal(probes)
	if err != nil {
		// The types of a plan always encode.
		return probes
	}
	return t.probes.share(text, probes)
}

// reportedPods is the field `pods` of a ProbeReport in managedFields.
const reportedPods = `{"f:pods":{}}`

// TrimReport returns a ProbeReport with only what marks, the conditions of markers and metrics are
// built from, and what ChangedByOthers reads.
func TrimReport(report *seamarkv1alpha1.ProbeReport) *seamarkv1alpha1.ProbeReport {
	trimmed := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{
			Name: report.Name, UID: report.UID, ResourceVersion: report.ResourceVersion,
			ManagedFields: otherWriters(report.ManagedFields),
		},
		NodeName: intern(report.NodeName),
	}
	if len(report.Pods) == 0 {
		return trimmed
	}
	probes := 0
	for i := range report.Pods {
		probes += len(report.Pods[i].Probes)
	}
	// All states of a slice are in one array.
	states := make([]v1alpha1.ContainerProbeState, 0, probes)
	trimmed.Pods = make([]seamarkv1alpha1.PodReport, 0, len(report.Pods))
	for i := range report.Pods {
		pod := &report.Pods[i]
		first := len(states)
		for _, state := range pod.Probes {
			state.Name, state.State, state.Plan = intern(state.Name), intern(state.State), intern(state.Plan)
			// Only the agent reads it.
			state.ContainerID = ""
			states = append(states, state)
		}
		small := seamarkv1alpha1.PodReport{Namespace: intern(pod.Namespace), Name: pod.Name, UID: pod.UID, Errors: pod.Errors}
		if len(states) > first {
			small.Probes = slices.Clip(states[first:])
		}
		trimmed.Pods = append(trimmed.Pods, small)
	}
	return trimmed
}

// ChangedByOthers reports whether another client than the agent has set the pods of the
// ProbeReport, and the agent has not replaced them since. A list has one owner, the last writer,
// except that an apply of equal pods adds an owner.
func ChangedByOthers(report *seamarkv1alpha1.ProbeReport) bool {
	return len(otherWriters(report.ManagedFields)) > 0
}

// otherWriters returns the entries of the managers that own the pods, except the agent's. They
// have only the manager and the field.
func otherWriters(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var others []metav1.ManagedFieldsEntry
	for i := range managed {
		if e := &managed[i]; e.Manager != v1alpha1.AgentFieldManager && ownsPods(e) {
			others = append(others, metav1.ManagedFieldsEntry{Manager: e.Manager, FieldsV1: metav1.NewFieldsV1(reportedPods)})
		}
	}
	return others
}

func ownsPods(entry *metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var owned struct {
		Pods *struct{} `json:"f:pods"`
	}
	// Invalid fields are no reason to disturb the agent.
	return json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) == nil && owned.Pods != nil
}
