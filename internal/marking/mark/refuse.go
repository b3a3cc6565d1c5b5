// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Refusal is a probe whose marks the API server does not accept.
type Refusal struct {
	// Probe identifies the probe.
	Probe identity.ID
	// Reason is the error of the API server.
	Reason error
}

// MaxTries is the maximum number of tries of one search by Accepted.
const MaxTries = 64

// Try asks the API server whether it accepts the marks, without writing them. refusal is its
// reason if it does not; err is any other error.
type Try func(marks Marks) (refusal, err error)

// Accepted finds the probes whose marks are refused, given that all marks together are refused
// for the reason. It returns the marks of the other probes, which are accepted together. It adds
// the marks of probe by probe in the given order, as for conflicts: if the marks of several probes
// are too large together, the last ones are refused. If the marks without any probe are refused
// too, no probe is at fault, and the error is the reason. After MaxTries, it omits the probes that
// it has not tried.
func Accepted(desired Marks, claims Claims, order []identity.ID, reason error, try Try) (Marks, []Refusal, error) {
	accepted := make(Marks)
	refusal, err := try(accepted)
	switch {
	case err != nil:
		return nil, nil, err
	case refusal != nil:
		return nil, nil, reason
	}
	var refused []Refusal
	tries := 1
	for _, id := range order {
		more := desired.OfProbe(claims, id)
		if len(more) == 0 {
			continue
		}
		if tries == MaxTries {
			refused = append(refused, Refusal{Probe: id, Reason: reason})
			continue
		}
		tries++
		maps.Copy(more, accepted)
		refusal, err := try(more)
		switch {
		case err != nil:
			return nil, nil, err
		case refusal != nil:
			refused = append(refused, Refusal{Probe: id, Reason: refusal})
		default:
			accepted = more
		}
	}
	return accepted, refused, nil
}

// OfProbe returns the marks that belong to the probe.
func (m Marks) OfProbe(claims Claims, probe identity.ID) Marks {
	return m.filter(func(key Key) bool { return claims[key] == probe })
}

// Without returns the marks that do not belong to the probes.
func (m Marks) Without(claims Claims, probes sets.Set[identity.ID]) Marks {
	return m.filter(func(key Key) bool { return !probes.Has(claims[key]) })
}
