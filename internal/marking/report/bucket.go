// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "time"

const (
	// messageBurst is how many changed messages of a probe may be reported without delay
	// while the state stays the same.
	messageBurst = 3

	// messageRefill is how long it takes until another one may be reported.
	messageRefill = time.Minute
)

// bucket contains the tokens for changed messages of one probe. The zero bucket is full. It is
// immutable: take returns a new bucket.
type bucket struct {
	// full is when the bucket is full again, if no token is taken until then.
	full time.Time
}

// due returns when the bucket has a token, which may be in the past.
func (b bucket) due() time.Time { return b.full.Add(-(messageBurst - 1) * messageRefill) }

// take takes a token. An empty bucket stays empty.
func (b bucket) take(now time.Time) bucket {
	if b.full.Before(now) {
		b.full = now
	}
	if empty := now.Add((messageBurst - 1) * messageRefill); b.full.After(empty) {
		b.full = empty
	}
	return bucket{full: b.full.Add(messageRefill)}
}
