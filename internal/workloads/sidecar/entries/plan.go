// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/isolate"
)

// Bounds of the entries. A MutatingWebhookConfiguration stays under 1 MiB, because etcd does not store more
// than 1.5 MiB: 64 entries of 8 KiB and 16 groups of 24 KiB.
const (
	// Configurations is the number of MutatingWebhookConfigurations.
	Configurations = 4
	// MaxBytes is the maximum size of the entry of a set.
	MaxBytes = 8 << 10

	ownPerConfiguration    = 64
	groupsPerConfiguration = 16
	setsPerGroup           = 128
	bytesPerGroup          = 24 << 10
)

// ConfigurationName returns the name of a MutatingWebhookConfiguration, 0 to Configurations - 1. Webhooks run in
// the order of these names: later than most others, whose mounts and variables are shared.
func ConfigurationName(i int) string { return fmt.Sprintf("seamark-sidecarsets-%d", i) }

// Lists are the entries of the configurations.
type Lists [Configurations][]admissionregistrationv1.MutatingWebhook

// Names returns the names of the sets that have an entry, or share one, whatever it selects.
func (l Lists) Names() map[string]bool {
	names := map[string]bool{}
	for i, list := range l {
		for j := range list {
			group, isGroup := strings.CutSuffix(list[j].Name, groupSuffix)
			if !isGroup {
				names[strings.TrimSuffix(list[j].Name, suffix)] = true
				continue
			}
			for _, m := range parseGroup(group, i, &list[j]).members {
				names[m.set] = true
			}
		}
	}
	return names
}

// Plan is what the configurations should contain next.
type Plan struct {
	// Lists are the entries.
	Lists Lists
	// Entered are the sets that have an entry, TooMany those for which there is no place. A set that is in
	// neither waits for a place that another set leaves.
	Entered, TooMany map[types.UID]bool
}

// Injects reports whether pods that the set selects get its containers.
func Injects(set *v1alpha1.SidecarSet) bool { return set.Status.InForce != nil && !isIdle(set) }

// isIdle reports whether the set injects nothing, whatever was accepted.
func isIdle(set *v1alpha1.SidecarSet) bool {
	return set.DeletionTimestamp != nil || set.Spec.InjectionStrategy.Paused
}

// IsUndecided reports whether the set may inject, but it is not known what was accepted.
func IsUndecided(set *v1alpha1.SidecarSet) bool { return !isIdle(set) && IsUnknown(set) }

// IsUnknown reports whether the status does not say what was accepted, nor that nothing was: the set is new, or
// OpenKruise has written the status, whose client drops the fields that it does not know, or this part cannot be decoded.
func IsUnknown(set *v1alpha1.SidecarSet) bool {
	if record := isolate.Of(set); record != nil && record.Lacks("status.inForce") {
		return true
	}
	return set.Status.InForce == nil && meta.FindStatusCondition(set.Status.Conditions, v1alpha1.SidecarSetAccepted) == nil
}

// ReasonPaused is the reason of the condition Injecting of a set whose injection is paused.
const ReasonPaused = "Paused"

// Paused reports whether the injection is paused. That of a set that cannot be decoded stays as its status says.
func Paused(set *v1alpha1.SidecarSet) bool {
	if record := isolate.Of(set); record == nil || !record.Lacks("spec.injectionStrategy") {
		return set.Spec.InjectionStrategy.Paused
	}
	injecting := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.SidecarSetInjecting)
	return injecting != nil && injecting.Reason == ReasonPaused
}

// Size returns the size of the entry of a set in bytes.
func Size(set *v1alpha1.SidecarSet) int {
	// Entries always encode.
	encoded, _ := json.Marshal(Server{}.Entry(set))
	return len(encoded)
}

// Plan returns the next entries of the sets, given those that are stored.
//
// The configurations are written one after the other, in any order, and the program may end in between. So that the
// pods of a set are sent to the injectors at any time, an entry changes in its place or stays until another one that
// selects what the set selects is stored: a set that moves has two entries for one plan. The plan for what another one
// stored is the next step, until nothing changes.
//
// A set that has an entry of its own, or shares one, keeps it. Free places go to the other sets by age, first to those
// that cannot share an entry, because they are not bound to named namespaces. If there are more of these than places,
// the youngest sets that can share an entry give theirs.
func (s Server) Plan(all []*v1alpha1.SidecarSet, stored Lists) Plan {
	p := s.newPlanning(all, stored)
	p.assign()
	p.place()
	return p.build()
}

// Reduce returns the stored entries without those of sets that inject nothing.
func (s Server) Reduce(all []*v1alpha1.SidecarSet, stored Lists) Plan {
	p := s.newPlanning(all, stored)
	p.frozen = true
	for _, set := range all {
		p.undecided[set.Name] = !isIdle(set) && (set.Status.InForce != nil || IsUndecided(set))
	}
	p.sets = nil
	p.assign()
	return p.build()
}

// older orders sets by their age.
func older(a, b *v1alpha1.SidecarSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}
