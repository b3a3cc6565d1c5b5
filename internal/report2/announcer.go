// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "time"

const (
	// ErrorDelay is how long a problem must last before it is reported. An exec that fails
	// because its container ends is over earlier.
	ErrorDelay = 3 * time.Second

	// ErrorInterval is the minimum time between two reports of a probe that differ only in
	// whether it has an error or in the reason.
	ErrorInterval = time.Minute

	// ErrorTextInterval is the minimum time between two reports of a probe that differ only
	// in the message of an error.
	ErrorTextInterval = 10 * time.Minute

	// RepeatFirst is the time after which the event of an error is repeated. It doubles with
	// each repetition up to RepeatMax.
	RepeatFirst = time.Hour

	// RepeatMax is the longest time between two events of an error.
	RepeatMax = 24 * time.Hour

	// MaxCopyBytes is the budget of Copy in encoded bytes: etcd stores it together with the
	// plan.
	MaxCopyBytes = 624 << 10
)

// Announcer decides which errors get an event, and when. An error gets one event, which is
// repeated rarely while the error stays, because the API server deletes events after an
// hour. The zero value is not usable.
type Announcer struct{}

// NewAnnouncer returns an announcer that starts with a ledger at now. The errors in it got
// their event before.
func NewAnnouncer(now time.Time, ledger Ledger) *Announcer { return &Announcer{} }

// Due returns the events that are due at now for the errors that have been reported, in the
// order of the plan, and when the next event is due if the errors stay. The time is zero if
// there are no errors.
func (a *Announcer) Due(now time.Time, plan Plan, ledger Ledger) (events []Event, next time.Time) {
	return nil, time.Time{}
}
