// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
	unknown   = v1alpha1.ProbeUnknown

	cannotRun = v1alpha1.ProbeCannotRun
	notEnded  = v1alpha1.ProbeNotEnded
)

// at returns the time s seconds after the start of a test.
func at(s float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

func encodedSize(t testing.TB, value any) int {
	t.Helper()
	body, err := json.Marshal(value)
	expect.NoError(t, err)
	return len(body)
}

// randomMessage returns a valid message of about the length.
func randomMessage(rng *rand.Rand, length int) string {
	var message strings.Builder
	for message.Len() < length {
		message.WriteRune([]rune("aaaaé世<\x01\n\"\u2028")[rng.IntN(11)])
	}
	return message.String()
}
