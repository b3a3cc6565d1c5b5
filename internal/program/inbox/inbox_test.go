// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inbox_test

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/program/inbox"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestDeliverCallsPendingFunctionsInOrder(t *testing.T) {
	b := inbox.New(time.Now)
	var got []int
	for i := range 3 {
		b.Post(func(time.Time) {
			got = append(got, i)
			if i == 0 {
				b.Post(func(time.Time) { got = append(got, 3) })
			}
		})
	}
	<-b.Wake()
	b.Deliver()
	expect.Equal(t, "calls", []int{0, 1, 2}, got)
	<-b.Wake()
	b.Deliver()
	expect.Equal(t, "calls with the function posted during delivery", []int{0, 1, 2, 3}, got)
}
