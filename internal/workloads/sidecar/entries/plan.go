// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"encoding/json"
	"fmt"
	"slices"
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

// Plan is what the configurations should contain.
type Plan struct {
	// Lists are the entries.
	Lists Lists
	// Entered are the sets that have an entry, TooMany those for which there is no place.
	Entered, TooMany map[types.UID]bool
}

// Injects reports whether pods that the set selects get its containers.
func Injects(set *v1alpha1.SidecarSet) bool {
	return set.Status.InForce != nil && set.DeletionTimestamp == nil && !set.Spec.InjectionStrategy.Paused
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

// Plan returns the entries of the sets, given those that are stored. A set that has an entry of its own keeps
// it. The others get the free places by age, first those that cannot share an entry, because they are not bound
// to named namespaces. Sets without a place share entries.
func (s Server) Plan(all []*v1alpha1.SidecarSet, stored Lists) Plan {
	p := planning{Server: s, Plan: Plan{Entered: map[types.UID]bool{}, TooMany: map[types.UID]bool{}}}
	all = slices.DeleteFunc(slices.Clone(all), func(set *v1alpha1.SidecarSet) bool { return !Injects(set) })
	slices.SortFunc(all, older)
	p.place(p.keep(all, stored))
	for i := range p.groups {
		p.Lists[i%Configurations] = append(p.Lists[i%Configurations], s.group(p.groups[i].name, p.groups[i].failure, p.groups[i].members))
	}
	return p.Plan
}

// older orders sets by their age.
func older(a, b *v1alpha1.SidecarSet) int {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

type planning struct {
	Server
	Plan
	groups []group
}

// group is a shared entry.
type group struct {
	name    string
	failure admissionregistrationv1.FailurePolicyType
	members []member
	bytes   int
}

// keep places the sets that have an entry of their own, and returns the others.
func (p *planning) keep(all []*v1alpha1.SidecarSet, stored Lists) []*v1alpha1.SidecarSet {
	places := map[string]int{}
	for i, list := range stored {
		for j := range list {
			places[list[j].Name] = i
		}
	}
	var rest []*v1alpha1.SidecarSet
	for _, set := range all {
		if i, found := places[name(set)]; found && len(p.Lists[i]) < ownPerConfiguration {
			p.enter(i, set)
		} else {
			rest = append(rest, set)
		}
	}
	return rest
}

// place places the sets in the configurations with the fewest entries, and the rest in groups.
func (p *planning) place(rest []*v1alpha1.SidecarSet) {
	var bound []*v1alpha1.SidecarSet
	for _, set := range rest {
		switch _, ok := p.newMember(set); {
		case ok:
			bound = append(bound, set)
		case !p.placeOwn(set):
			p.TooMany[set.UID] = true
		}
	}
	for _, set := range bound {
		if p.placeOwn(set) {
			continue
		}
		if m, _ := p.newMember(set); p.join(failurePolicy(set), m) {
			p.Entered[set.UID] = true
		} else {
			p.TooMany[set.UID] = true
		}
	}
}

// placeOwn adds an entry of its own for the set, and reports whether there is a place.
func (p *planning) placeOwn(set *v1alpha1.SidecarSet) bool {
	least := 0
	for i := range p.Lists {
		if len(p.Lists[i]) < len(p.Lists[least]) {
			least = i
		}
	}
	if len(p.Lists[least]) == ownPerConfiguration {
		return false
	}
	p.enter(least, set)
	return true
}

func (p *planning) enter(i int, set *v1alpha1.SidecarSet) {
	p.Lists[i] = append(p.Lists[i], p.Entry(set))
	p.Entered[set.UID] = true
}

// join adds the set to the first group that has room, and reports whether there is one.
func (p *planning) join(failure admissionregistrationv1.FailurePolicyType, m member) bool {
	bytes := len(m.row) + len(strings.Join(m.namespaces, `","`))
	number := 0
	for i := range p.groups {
		g := &p.groups[i]
		if g.failure != failure {
			continue
		}
		number++
		if len(g.members) < setsPerGroup && g.bytes+bytes <= bytesPerGroup {
			g.members, g.bytes = append(g.members, m), g.bytes+bytes
			return true
		}
	}
	if len(p.groups) == Configurations*groupsPerConfiguration || bytes > bytesPerGroup {
		return false
	}
	p.groups = append(p.groups, group{
		name: fmt.Sprintf("%s-%d", strings.ToLower(string(failure)), number), failure: failure, members: []member{m}, bytes: bytes,
	})
	return true
}
