// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/extract"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/isolate"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Marker is a compiled PodProbeMarker. It is valid for one generation of the marker and must
// not be modified.
type Marker struct {
	// Namespace is the namespace whose pods the marker selects.
	Namespace string
	// Name is the marker's name.
	Name string
	// Deleting is whether the marker is being deleted. It then selects no pods.
	Deleting bool
	// UID and Generation identify what was compiled. They are empty if the marker is not stored in a cluster.
	UID        types.UID
	Generation int64

	// created is zero if the marker is not stored in a cluster.
	created time.Time
	// plan distinguishes the probes from those of an earlier marker with the same name.
	plan        string
	selector    labels.Selector
	probes      []source
	exclusives  []Exclusive
	publishBody bool
	// updates is how messages are reported, or empty if the default applies.
	updates v1alpha1.MessageUpdates
}

// source is one probe of a marker. wire is the encoded id. bytes is what it takes at most in the plan
// of a pod.
type source struct {
	id    identity.ID
	wire  string
	spec  *v1alpha1.PodContainerProbe
	bytes int
	// values are what the agent watches in the messages.
	values []v1alpha1.WatchedValue
}

// Compile compiles m. It returns an error if the selector is missing, empty or invalid, a
// probe name is empty, repeated or contains "#", a condition type belongs to Kubernetes, a
// policy sets a label of the selector, a label with the prefix ExclusiveTicketPrefix, an annotation that passes probes
// to providers, or a mark of an exclusive policy. The CRD rejects all but the last three, so
// the others occur only in markers that were created with another CRD. So does a spec that cannot be decoded.
func Compile(m *v1alpha1.PodProbeMarker) (*Marker, error) {
	if record := isolate.Of(m); record != nil && record.Spec() {
		return nil, record
	}
	selector, err := compileSelector(m.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	compiled := &Marker{
		Namespace: m.Namespace,
		Name:      m.Name,
		Deleting:  m.DeletionTimestamp != nil,
		UID:       m.UID, Generation: m.Generation,
		created:  m.CreationTimestamp.Time,
		plan:     planOf(m.UID),
		selector: selector,
		probes:   make([]source, 0, len(m.Spec.Probes)),

		publishBody: publishesBody(m), updates: updatesOf(m),
	}
	seen := make(map[identity.ID]bool, len(m.Spec.Probes))
	for i := range m.Spec.Probes {
		spec := &m.Spec.Probes[i]
		id := identity.ID{Marker: m.Name, Probe: spec.Name}
		if parsed, err := identity.Parse(id.String()); err != nil || parsed != id {
			return nil, fmt.Errorf("spec.probes[%d].name: %q is invalid: must not be empty or contain \"#\"", i, spec.Name)
		}
		if seen[id] {
			return nil, fmt.Errorf("spec.probes[%d].name: %q is invalid: must be unique", i, spec.Name)
		}
		if v1alpha1.IsNativePodCondition(corev1.PodConditionType(spec.PodConditionType)) {
			return nil, fmt.Errorf("spec.probes[%d].podConditionType: %q is invalid: must not be a condition type of Kubernetes", i, spec.PodConditionType)
		}
		if err := checkLabels(spec.MarkerPolicy, m.Spec.Selector); err != nil {
			return nil, fmt.Errorf("spec.probes[%d].%w", i, err)
		}
		if err := checkAnnotations(spec.MarkerPolicy); err != nil {
			return nil, fmt.Errorf("spec.probes[%d].%w", i, err)
		}
		if err := checkExclusive(spec.MarkerPolicy); err != nil {
			return nil, fmt.Errorf("spec.probes[%d].%w", i, err)
		}
		seen[id] = true
		compiled.exclusives = append(compiled.exclusives, compiled.exclusivesOf(id, spec)...)
		values := extract.Watched(spec.MarkerPolicy)
		compiled.probes = append(compiled.probes, source{
			id: id, wire: id.String(), spec: spec, values: values, bytes: compiled.bytesOf(id, spec, values),
		})
	}
	return compiled, nil
}

// MaxPodBytes is the maximum size of the encoded probes of one pod. It limits what one pod costs,
// however long the commands of a tenant's probes are. Ordinary probes take about 300 bytes.
const MaxPodBytes = 64 << 10

// resolvedBytes is what defaults, a port number, annotations of the marker and field names add to a probe
// at most.
const resolvedBytes = 256

// bytesOf returns the maximum size of the probe in the plan of a pod.
func (m *Marker) bytesOf(id identity.ID, spec *v1alpha1.PodContainerProbe, values []v1alpha1.WatchedValue) int {
	// The types of a plan always encode.
	encoded, _ := json.Marshal(v1alpha1.ContainerProbe{
		Name: id.String(), Plan: m.plan, ContainerName: spec.ContainerName, Probe: spec.Probe, Values: values,
	})
	return resolvedBytes + len(encoded)
}

// CheckAnnotations returns an error if the annotation about messages of a marker has an invalid value,
// which counts as not set.
func CheckAnnotations(m *v1alpha1.PodProbeMarker) error {
	value, set := m.Annotations[v1alpha1.MessageUpdatesAnnotationKey]
	if !set || v1alpha1.MessageUpdates(value).IsValid() {
		return nil
	}
	return fmt.Errorf("%q is invalid and counts as not set: must be %s or %s",
		text.Truncate(value, maxQuoted), v1alpha1.MessageUpdatesLimited, v1alpha1.MessageUpdatesImmediate)
}

// maxQuoted is the maximum length of an invalid value in a message.
const maxQuoted = 64

// updatesOf returns how the marker requests that messages are reported. It is empty if the marker does
// not say.
func updatesOf(m *v1alpha1.PodProbeMarker) v1alpha1.MessageUpdates {
	if CheckAnnotations(m) != nil {
		return ""
	}
	return v1alpha1.MessageUpdates(m.Annotations[v1alpha1.MessageUpdatesAnnotationKey])
}

// updatesWith returns how the messages of the marker's probes are reported, as the plan has it: it is
// empty unless they are reported at once.
func (m *Marker) updatesWith(defaults Defaults) v1alpha1.MessageUpdates {
	if updates := cmp.Or(m.updates, defaults.MessageUpdates); updates == v1alpha1.MessageUpdatesImmediate {
		return updates
	}
	return ""
}

// publishesBody reports whether the marker requests that bodies of httpGet responses are
// published.
func publishesBody(m *v1alpha1.PodProbeMarker) bool {
	return m.Annotations[v1alpha1.PublishHTTPBodyAnnotationKey] == "true"
}

// planOf returns a hash of the UID of a marker, or an empty string if it has none.
func planOf(uid types.UID) string {
	if uid == "" {
		return ""
	}
	hash := fnv.New32a()
	hash.Write([]byte(uid))
	return fmt.Sprintf("%08x", hash.Sum32())
}

func compileSelector(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, errors.New("must have at least one label or expression")
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("is invalid: %w", err)
	}
	return compiled, nil
}

// ErrTicketLabel means that a policy sets a label that Seamark sets for exclusive policies.
var ErrTicketLabel = fmt.Errorf("must not have the prefix %q of labels that Seamark sets for exclusive policies", v1alpha1.ExclusiveTicketPrefix)

// checkLabels returns an error if a policy sets a label of the selector, because each write could
// select or deselect the pod and cause the next one, or a label that Seamark sets for exclusive policies.
func checkLabels(policies []v1alpha1.ProbeMarkerPolicy, selector *metav1.LabelSelector) error {
	for i := range policies {
		for _, key := range policies[i].LabelKeys() {
			if strings.HasPrefix(key, v1alpha1.ExclusiveTicketPrefix) {
				return fmt.Errorf("markerPolicy[%d].labels: %q is invalid: %w", i, key, ErrTicketLabel)
			}
			_, matched := selector.MatchLabels[key]
			if matched || slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == key }) {
				return fmt.Errorf("markerPolicy[%d].labels: %q is invalid: must not be a key of spec.selector: "+
					"the marker would change which pods it selects", i, key)
			}
		}
	}
	return nil
}

// checkAnnotations returns an error if a policy sets an annotation for providers, because the
// controllers would overwrite each other's values forever.
func checkAnnotations(policies []v1alpha1.ProbeMarkerPolicy) error {
	for i := range policies {
		for _, key := range []string{v1alpha1.PodProbeMarkerAnnotationKey, v1alpha1.PodProbeMarkerListAnnotationKey} {
			if slices.Contains(policies[i].AnnotationKeys(), key) {
				return fmt.Errorf("markerPolicy[%d].annotations: %q is invalid: must not be an annotation that Seamark sets for providers", i, key)
			}
		}
	}
	return nil
}

// Key returns the namespace and name of the marker.
func (m *Marker) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// AnyProbe reports whether a probe of the marker meets the condition. The probes must not be
// modified.
func (m *Marker) AnyProbe(meets func(*v1alpha1.PodContainerProbe) bool) bool {
	return slices.ContainsFunc(m.probes, func(s source) bool { return meets(s.spec) })
}

// Probes returns the probes of the marker as far as they do not depend on a pod: without the resolved
// probe.
func (m *Marker) Probes() []PlannedProbe {
	probes := make([]PlannedProbe, 0, len(m.probes))
	for _, s := range m.probes {
		probes = append(probes, m.unresolved(s))
	}
	return probes
}

func (m *Marker) unresolved(s source) PlannedProbe {
	return PlannedProbe{ID: s.id, Source: s.spec, Plan: v1alpha1.ContainerProbe{Name: s.wire, Plan: m.plan}}
}

// StaleAfters returns the times after which states of the marker's probes are stale. It is empty if they
// never are.
func (m *Marker) StaleAfters() []time.Duration {
	var afters []time.Duration
	for _, probe := range m.probes {
		if after, set := StaleAfter(probe.spec); set {
			afters = append(afters, after)
		}
	}
	return afters
}

// StaleAfter returns the time after which the state of the probe is stale, and whether it ever is.
func StaleAfter(probe *v1alpha1.PodContainerProbe) (time.Duration, bool) {
	if probe.StaleAfterSeconds == nil {
		return 0, false
	}
	return time.Duration(*probe.StaleAfterSeconds) * time.Second, true
}

// Selects reports whether the marker's probes are planned for the pod once it is eligible: the
// selector matches, and the marker is not being deleted.
func (m *Marker) Selects(pod *corev1.Pod) bool {
	return !m.Deleting && m.Matches(pod)
}

// Matches reports whether the marker's selector matches the pod, whether or not the marker is
// being deleted. Decisions about which objects an event affects use it, because a marker may be
// deleted between the event and its handler.
func (m *Marker) Matches(pod *corev1.Pod) bool {
	return m.Namespace == pod.Namespace && m.selector.Matches(labels.Set(pod.Labels))
}

// Unmet returns the requirements of the marker's selector that the labels do not meet, ordered by
// key. They are none if the selector matches.
func (m *Marker) Unmet(podLabels map[string]string) []labels.Requirement {
	requirements, _ := m.selector.Requirements()
	return slices.DeleteFunc(slices.Clone(requirements), func(r labels.Requirement) bool { return r.Matches(labels.Set(podLabels)) })
}

// Requirements returns all requirements of the marker's selector, ordered by key.
func (m *Marker) Requirements() []labels.Requirement {
	requirements, _ := m.selector.Requirements()
	return slices.Clone(requirements)
}

// ExcludedError means that the pods of a marker's namespace are not planned.
type ExcludedError struct{ namespace string }

// Error describes the setting.
func (e *ExcludedError) Error() string {
	return fmt.Sprintf("namespace %q is excluded: the manager plans no probes of its pods, because its setting excludedNamespaces has it", e.namespace)
}

// Compiler caches compiled markers by generation and annotations. It is safe for concurrent use.
type Compiler struct {
	excluded []string

	mu   sync.Mutex
	done map[types.NamespacedName]compilation
}

// compilation is the result for one version of a marker.
type compilation struct {
	uid        types.UID
	generation int64
	deleting   bool
	publishes  bool
	updates    v1alpha1.MessageUpdates
	marker     *Marker
	err        error
}

// NewCompiler returns a Compiler with an empty cache, for which markers of the excluded namespaces do not
// compile.
func NewCompiler(excluded ...string) *Compiler {
	return &Compiler{excluded: excluded, done: make(map[types.NamespacedName]compilation)}
}

// Compile is like the function Compile, but caches the result. The error is an ExcludedError for a marker of
// an excluded namespace.
func (c *Compiler) Compile(m *v1alpha1.PodProbeMarker) (*Marker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compile(m)
}

func (c *Compiler) compile(m *v1alpha1.PodProbeMarker) (*Marker, error) {
	if slices.Contains(c.excluded, m.Namespace) {
		return nil, &ExcludedError{m.Namespace}
	}
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
	known, found := c.done[key]
	if found && known.uid == m.UID && known.generation == m.Generation &&
		known.deleting == (m.DeletionTimestamp != nil) && known.publishes == publishesBody(m) && known.updates == updatesOf(m) {
		return known.marker, known.err
	}
	marker, err := Compile(m)
	c.done[key] = compilation{
		uid: m.UID, generation: m.Generation, deleting: m.DeletionTimestamp != nil, publishes: publishesBody(m), updates: updatesOf(m),
		marker: marker, err: err,
	}
	return marker, err
}

// All compiles the markers and omits those that do not compile.
func (c *Compiler) All(markers []*v1alpha1.PodProbeMarker) []*Marker {
	c.mu.Lock()
	defer c.mu.Unlock()
	compiled := make([]*Marker, 0, len(markers))
	for _, marker := range markers {
		if m, err := c.compile(marker); err == nil {
			compiled = append(compiled, m)
		}
	}
	return compiled
}

// Forget removes a deleted marker from the cache.
func (c *Compiler) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.done, key)
}
