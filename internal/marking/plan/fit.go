// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

const (
	// MaxBytes is the budget of a node's plan in encoded bytes. 250 pods with 8 ordinary probes
	// each fit into it.
	MaxBytes = 900 << 10
	// storedBytes is the budget of a plan of MaxBytes together with the states of its probes,
	// without messages. etcd stores at most 1.5 MiB per request by default, for these, the
	// metadata and the messages, which the report limits.
	storedBytes = 1524 << 10
	// containerIDBytes is the maximum length of the ID of a container in a state.
	containerIDBytes = 80
)

// Shortage is a probe that some pods of a node must do without, because the plan has no room for
// it.
type Shortage struct {
	// Namespace is that of the marker and the pods.
	Namespace string
	// ID identifies the probe.
	ID identity.ID
	// Pods is the number of pods, and Example the first of their names.
	Pods    int
	Example string
}

// Fit returns the part of the plan of a node that takes at most maxBytes when encoded, and what
// it leaves out. It does not modify the plan. The states of the probes must fit into their part of
// the same object, so that long names count more than their bytes in the plan.
//
// The namespaces share the budget, and the markers of a namespace share its part: whoever needs
// less than an equal share gets everything and leaves the rest to the others. The probes of a
// marker go to the oldest pods first, so that a new pod never takes the place of an older one.
func Fit(spec v1alpha1.NodePodProbeSpec, pods []*corev1.Pod, maxBytes int) (v1alpha1.NodePodProbeSpec, []Shortage) {
	f := fitter{sizes: make(map[probeKey]int), byNamespace: make(map[string][]*v1alpha1.PodProbe)}
	demands, total := make(map[string]int), 0
	for i := range spec.PodProbes {
		pod := &spec.PodProbes[i]
		f.byNamespace[pod.Namespace] = append(f.byNamespace[pod.Namespace], pod)
		bytes := f.podSize(pod)
		demands[pod.Namespace] += bytes
		total += bytes
	}
	maxBytes -= len(`{"podProbes":[]}`)
	if total <= maxBytes {
		return spec, nil
	}
	f.created = make(map[string]time.Time, len(pods))
	for _, pod := range pods {
		f.created[string(pod.UID)] = pod.CreationTimestamp.Time
	}
	share := fairShare(demands, maxBytes)
	f.left = make(map[string]map[string]bool)
	f.short = make(map[probeKey]Shortage)
	for namespace, demand := range demands {
		if demand > share {
			f.restrict(namespace, share)
		}
	}
	return f.apply(spec), f.shortages()
}

// Size returns the number of bytes of the encoded plan.
func Size(spec v1alpha1.NodePodProbeSpec) int { return encodedSize(spec) }

// fitter decides which probes are left out.
type fitter struct {
	sizes       map[probeKey]int
	byNamespace map[string][]*v1alpha1.PodProbe
	// created holds when the pods were created, by UID.
	created map[string]time.Time
	// left holds the names of the probes that are left out, by the UID of the pod.
	left  map[string]map[string]bool
	short map[probeKey]Shortage
}

// probeKey identifies a probe in all pods of a node.
type probeKey struct{ namespace, name string }

// restrict decides which probes of the namespace are left out, so that the others take at most
// maxBytes.
func (f *fitter) restrict(namespace string, maxBytes int) {
	pods := f.byNamespace[namespace]
	slices.SortFunc(pods, func(a, b *v1alpha1.PodProbe) int {
		return cmp.Or(
			f.created[a.UID].Compare(f.created[b.UID]),
			strings.Compare(a.Name, b.Name),
			strings.Compare(a.UID, b.UID),
		)
	})
	demands := make(map[string]int)
	for _, pod := range pods {
		f.each(pod, func(marker string, _ *v1alpha1.ContainerProbe, bytes int) bool {
			demands[marker] += bytes
			return true
		})
	}
	share := fairShare(demands, maxBytes)
	room := make(map[string]int, len(demands))
	for marker, demand := range demands {
		room[marker] = min(demand, share)
	}
	for _, pod := range pods {
		f.each(pod, func(marker string, probe *v1alpha1.ContainerProbe, bytes int) bool {
			if bytes > room[marker] {
				f.leaveOut(pod, probe)
				return false
			}
			room[marker] -= bytes
			return true
		})
	}
}

// each calls take with the pod's probes, their markers, and the bytes that they need. These include
// the bytes of the pod itself until take returns true for a probe of the same marker: each marker
// pays for the pod, because it may be the only one.
func (f *fitter) each(pod *v1alpha1.PodProbe, take func(marker string, probe *v1alpha1.ContainerProbe, bytes int) bool) {
	paid := make(map[string]bool)
	for i := range pod.Probes {
		probe := &pod.Probes[i]
		marker, _, _ := strings.Cut(probe.Name, "#")
		bytes := f.probeSize(pod.Namespace, probe)
		if !paid[marker] {
			bytes += ownSize(pod)
		}
		if take(marker, probe, bytes) {
			paid[marker] = true
		}
	}
}

func (f *fitter) leaveOut(pod *v1alpha1.PodProbe, probe *v1alpha1.ContainerProbe) {
	if f.left[pod.UID] == nil {
		f.left[pod.UID] = make(map[string]bool)
	}
	f.left[pod.UID][probe.Name] = true
	id, err := identity.Parse(probe.Name)
	if err != nil {
		return
	}
	key := probeKey{pod.Namespace, probe.Name}
	short, found := f.short[key]
	if !found {
		short = Shortage{Namespace: pod.Namespace, ID: id, Example: pod.Name}
	}
	short.Pods++
	short.Example = min(short.Example, pod.Name)
	f.short[key] = short
}

// apply returns the plan without the probes that are left out.
func (f *fitter) apply(spec v1alpha1.NodePodProbeSpec) v1alpha1.NodePodProbeSpec {
	var fitted v1alpha1.NodePodProbeSpec
	for _, pod := range spec.PodProbes {
		if left := f.left[pod.UID]; left != nil {
			pod.Probes = slices.DeleteFunc(slices.Clone(pod.Probes), func(p v1alpha1.ContainerProbe) bool { return left[p.Name] })
		}
		if len(pod.Probes) > 0 {
			fitted.PodProbes = append(fitted.PodProbes, pod)
		}
	}
	return fitted
}

func (f *fitter) shortages() []Shortage {
	return slices.SortedFunc(maps.Values(f.short), func(a, b Shortage) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.ID.Marker, b.ID.Marker),
			strings.Compare(a.ID.Probe, b.ID.Probe))
	})
}

// podSize returns the bytes that the pod takes of the budget.
func (f *fitter) podSize(pod *v1alpha1.PodProbe) int {
	bytes := ownSize(pod)
	for i := range pod.Probes {
		bytes += f.probeSize(pod.Namespace, &pod.Probes[i])
	}
	return bytes
}

// ownSize returns the bytes that the pod takes of the budget without its probes.
func ownSize(pod *v1alpha1.PodProbe) int {
	own := *pod
	own.Probes = nil
	status := v1alpha1.PodProbeStatus{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}
	return budgeted(encodedSize(own)+len(`,"probes":[],`), encodedSize(status)+len(`,"probeStates":[],`))
}

// probeSize returns the bytes that the probe takes of the budget. The same probe differs between
// pods only in the digits of its port.
func (f *fitter) probeSize(namespace string, probe *v1alpha1.ContainerProbe) int {
	key := probeKey{namespace, probe.Name}
	if bytes, known := f.sizes[key]; known {
		return bytes
	}
	sized := *probe
	switch {
	case probe.Probe.HTTPGet != nil:
		action := *probe.Probe.HTTPGet
		action.Port = intstr.FromInt32(math.MaxUint16)
		sized.Probe.HTTPGet = &action
	case probe.Probe.TCPSocket != nil:
		sized.Probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(math.MaxUint16)}
	}
	state := v1alpha1.ContainerProbeState{
		Name: probe.Name, State: v1alpha1.ProbeSucceeded, Plan: probe.Plan,
		LastProbeTime: metav1.Unix(1, 0), LastTransitionTime: metav1.Unix(1, 0),
	}
	f.sizes[key] = budgeted(encodedSize(sized)+len(","),
		encodedSize(state)+len(`,"containerID":"","message":"",`)+containerIDBytes)
	return f.sizes[key]
}

// budgeted returns what takes so many bytes in the plan and in the report, in bytes of the budget of
// the plan. If all of it is at most MaxBytes, plan and report together are at most storedBytes.
func budgeted(inPlan, inReport int) int {
	share := ((inPlan+inReport)*MaxBytes + storedBytes - 1) / storedBytes
	return max(inPlan, share)
}

func encodedSize(value any) int {
	encoded, err := json.Marshal(value)
	if err != nil {
		// The types of a plan always encode.
		return math.MaxInt32
	}
	return len(encoded)
}

// fairShare divides the budget: everyone gets the smaller of the demand and the returned share, and
// all of this together is at most the budget. Whoever needs less than an equal share leaves the
// rest to the others.
func fairShare(demands map[string]int, budget int) int {
	sorted := slices.Sorted(maps.Values(demands))
	for i, demand := range sorted {
		share := max(0, budget) / (len(sorted) - i)
		if demand > share {
			return share
		}
		budget -= demand
	}
	return math.MaxInt
}
