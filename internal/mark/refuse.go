// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/probeid"
)

// Refusal is a probe whose marks the API server does not accept.
type Refusal struct {
	// Probe identifies the probe.
	Probe probeid.ID
	// Reason is the error of the API server.
	Reason error
}

// maxTries is the maximum number of tries of one search by Accepted.
const maxTries = 64

// Try asks the API server whether it accepts the marks, without writing them. refusal is its
// reason if it does not; err is any other error.
type Try func(marks Marks) (refusal, err error)

// Accepted finds the probes whose marks are refused, given that all marks together are refused
// for the reason. It returns the marks of the other probes, which are accepted together. The
// probes are considered in the given order, as for conflicts: if the marks of several probes are
// too large together, the last ones are refused. If the marks without any probe are refused too,
// no probe is at fault, and the error is the reason. After maxTries, it omits all probes that it
// has not tried.
func Accepted(desired Marks, claims Claims, order []probeid.ID, reason error, try Try) (Marks, []Refusal, error) {
	s := &search{desired: desired, claims: claims, try: try}
	for _, id := range order {
		if len(desired.of(claims, sets.New(id))) > 0 {
			s.probes = append(s.probes, id)
		}
	}
	refusal, err := s.attempt(nil)
	if err != nil || refusal != nil {
		return nil, nil, firstError(err, reason)
	}
	var refused []Refusal
	for reason != nil {
		offender, why, err := s.offender(reason)
		if err != nil {
			return nil, nil, err
		}
		refused = append(refused, Refusal{Probe: s.probes[offender], Reason: why})
		s.probes = append(s.probes[:offender:offender], s.probes[offender+1:]...)
		if s.accepted = offender; s.tries >= maxTries {
			for _, id := range s.probes[s.accepted:] {
				refused = append(refused, Refusal{Probe: id, Reason: why})
			}
			s.probes = s.probes[:s.accepted]
		}
		if s.accepted == len(s.probes) {
			break
		}
		if reason, err = s.attempt(s.probes); err != nil {
			return nil, nil, err
		}
	}
	return desired.of(claims, sets.New(s.probes...)), refused, nil
}

func firstError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// search looks for the refused probes. The marks of the first accepted probes are accepted
// together, and those of all probes are refused together.
type search struct {
	desired  Marks
	claims   Claims
	try      Try
	probes   []probeid.ID
	accepted int
	tries    int
}

func (s *search) attempt(probes []probeid.ID) (refusal, err error) {
	s.tries++
	return s.try(s.desired.of(s.claims, sets.New(probes...)))
}

// offender returns the index of the first probe with which the marks of the probes up to it are
// refused, by bisection, and the reason.
func (s *search) offender(reason error) (int, error, error) {
	low, high := s.accepted, len(s.probes)
	for high-low > 1 {
		middle := (low + high) / 2
		refusal, err := s.attempt(s.probes[:middle])
		switch {
		case err != nil:
			return 0, nil, err
		case refusal != nil:
			high, reason = middle, refusal
		default:
			low = middle
		}
	}
	return high - 1, reason, nil
}

// of returns the marks that belong to the probes.
func (m Marks) of(claims Claims, probes sets.Set[probeid.ID]) Marks {
	marks := make(Marks)
	for key, value := range m {
		if probes.Has(claims[key]) {
			marks[key] = value
		}
	}
	return marks
}

// Without returns the marks that do not belong to the probes.
func (m Marks) Without(claims Claims, probes sets.Set[probeid.ID]) Marks {
	marks := make(Marks)
	for key, value := range m {
		if !probes.Has(claims[key]) {
			marks[key] = value
		}
	}
	return marks
}
