// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inbox_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/program/inbox"
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
	if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	<-b.Wake()
	b.Deliver()
	if diff := cmp.Diff([]int{0, 1, 2, 3}, got); diff != "" {
		t.Errorf("calls with the function posted during delivery (-want +got):\n%s", diff)
	}
}
