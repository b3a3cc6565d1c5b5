// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// alphabet is the alphabet of generated names in Kubernetes: no vowels, and no characters that look
	// alike.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
	idLength = 5
	// ids is the number of instance IDs.
	ids = 27 * 27 * 27 * 27 * 27
)

// names assigns serial numbers and instance IDs to new pods. A pod's ID is a function of the set and
// of the serial number, so that a create whose response was lost is repeated with the same name. The
// serial numbers continue after those of all pods that the set has ever had; a number whose pod was
// never seen is used first.
type names struct {
	set    *v1alpha1.CloneSet
	taken  map[string]bool
	seen   map[int64]bool
	free   []string
	serial int64
	// own are the IDs of the next serial numbers whose claims exist already.
	own map[string]bool
}

// newNames returns the names for so many new pods of the set. Names of pods, of claims that are being deleted or belong to others,
// of podsToDelete and of taken are not used.
func (p *planner) newNames(count int) *names {
	n := &names{
		set: p.Set, taken: p.takenIDs(), seen: p.serials(), serial: p.Set.Status.PodSerial,
	}
	free := p.freeIDs(n.taken)
	n.own = n.reserve(count, free)
	n.free = slices.DeleteFunc(free, func(id string) bool { return n.own[id] })
	return n
}

// takenIDs returns the instance IDs that no new pod gets. A claim of the set whose pod is not in the cache may be that of a
// pod that is being created: its ID is not taken, so that the create is repeated with the same name.
func (p *planner) takenIDs() map[string]bool {
	prefix := p.Set.Name + "-"
	taken := make(map[string]bool, len(p.Pods))
	for _, pod := range p.Pods {
		if id := pod.Labels[v1alpha1.CloneSetInstanceID]; id != "" {
			taken[id] = true
		}
		taken[strings.TrimPrefix(pod.Name, prefix)] = true
	}
	for name := range p.TakenNames {
		taken[strings.TrimPrefix(name, prefix)] = true
	}
	for _, name := range p.Set.Spec.ScaleStrategy.PodsToDelete {
		taken[strings.TrimPrefix(name, prefix)] = true
	}
	for _, claim := range p.Claims {
		if claim.DeletionTimestamp != nil || !p.owns(claim) {
			taken[claim.Labels[v1alpha1.CloneSetInstanceID]] = true
		}
	}
	return taken
}

// reserve returns which of the free IDs are those of the next serial numbers. Their claims are probably those of pods that
// another process, such as the previous leader, is creating now. Each stays with its number: if another pod took it, both
// processes would create pods with different names, and the set would have one too many.
func (n *names) reserve(count int, free []string) map[string]bool {
	isFree := make(map[string]bool, len(free))
	for _, id := range free {
		isFree[id] = true
	}
	own := map[string]bool{}
	for serial := n.serial + 1; count > 0 && len(free) > 0; serial++ {
		id := InstanceID(n.set.UID, serial)
		if n.seen[serial] || n.taken[id] {
			continue
		}
		count--
		if isFree[id] {
			own[id] = true
		}
	}
	return own
}

// serials returns the serial numbers of the pods that exist.
func (p *planner) serials() map[int64]bool {
	seen := make(map[int64]bool, len(p.Pods))
	for _, pod := range p.Pods {
		if serial := serialOf(pod); serial > p.Set.Status.PodSerial {
			seen[serial] = true
		}
	}
	return seen
}

// serialOf returns the serial number of the pod, zero if it has none.
func serialOf(pod *corev1.Pod) int64 {
	text := pod.Annotations[v1alpha1.PodSerialAnnotationKey]
	if text == "" {
		return 0
	}
	serial, err := strconv.ParseInt(text, 10, 64)
	if err != nil || serial < 0 {
		return 0
	}
	return serial
}

// next returns the serial number and the instance ID of the next pod: the ID of the number if it has a claim already,
// otherwise that of another claim that a new pod can use, otherwise a new one.
func (n *names) next() (int64, string) {
	for {
		n.serial++
		if n.seen[n.serial] {
			continue
		}
		id := InstanceID(n.set.UID, n.serial)
		if len(n.free) > 0 && !n.own[id] {
			id := n.free[0]
			n.free, n.taken[id] = n.free[1:], true
			return n.serial, id
		}
		if n.taken[id] {
			continue
		}
		n.taken[id] = true
		return n.serial, id
	}
}

// InstanceID returns the instance ID for the serial number. Different serial numbers of a set have
// different IDs, up to the number of IDs.
func InstanceID(set types.UID, serial int64) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(set))
	seed := h.Sum64()
	factor := seed % ids
	if factor%3 == 0 { // A factor without a common divisor makes the function a permutation.
		factor++
	}
	number := (factor*(uint64(serial)%ids) + (seed>>32)%ids) % ids
	id := make([]byte, idLength)
	for i := range id {
		id[i] = alphabet[number%uint64(len(alphabet))]
		number /= uint64(len(alphabet))
	}
	return string(id)
}

// watermark returns the highest serial number up to which all numbers have been used, for the status.
// A number whose ID is taken counts as used, one that only has a claim of the set does not.
func (p *planner) watermark() int64 {
	serial, highest := p.Set.Status.PodSerial, int64(0)
	seen := p.serials()
	for number := range seen {
		highest = max(highest, number)
	}
	var taken map[string]bool
	for serial < highest {
		if !seen[serial+1] {
			if taken == nil {
				taken = p.takenIDs()
			}
			if !taken[InstanceID(p.Set.UID, serial+1)] {
				break
			}
		}
		serial++
	}
	return serial
}

// freeIDs returns the instance IDs of claims of the set that a new pod can use, sorted. None of the
// claims of such an ID is being deleted or is to be deleted with another pod.
func (p *planner) freeIDs(taken map[string]bool) []string {
	if p.Set.Spec.ScaleStrategy.DisablePVCReuse || len(p.Set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	usable := make(map[string]bool)
	for _, claim := range p.Claims {
		id := claim.Labels[v1alpha1.CloneSetInstanceID]
		if id == "" || taken[id] {
			continue
		}
		_, known := usable[id]
		usable[id] = (!known || usable[id]) && claim.DeletionTimestamp == nil && p.owns(claim)
	}
	free := make([]string, 0, len(usable))
	for id, ok := range usable {
		if ok {
			free = append(free, id)
		}
	}
	slices.Sort(free)
	return free
}
