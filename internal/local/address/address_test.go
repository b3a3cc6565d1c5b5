// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func leased(t *testing.T, count int) *Lease {
	t.Helper()
	lease, err := Take(count)
	expect.NoError(t, err)
	t.Cleanup(func() {
		expect.Success(t, lease.Close())
	})
	if len(lease.Addresses) != count {
		t.Fatalf("%d addresses, want %d", len(lease.Addresses), count)
	}
	return lease
}

func TestLeasesDoNotOverlap(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for _, lease := range []*Lease{leased(t, 1), leased(t, 300), leased(t, 2)} {
		for _, a := range lease.Addresses {
			if seen[a] || !a.IsLoopback() {
				t.Errorf("%s is already leased or is not a loopback address", a)
			}
			seen[a] = true
		}
	}
}

func TestLeasedRangesAreReserved(t *testing.T) {
	// Take never uses these ranges, so there is no conflict with other runs.
	const first = 200 << 8
	held, err := take(first, 2, perBlock+1)
	expect.NoError(t, err)
	if last := held.Addresses[perBlock]; last != netip.MustParseAddr("127.200.1.2") {
		t.Errorf("first address of the second range is %s, want 127.200.1.2", last)
	}
	if _, err := take(first, 2, 1); err == nil {
		t.Error("reserved ranges were leased")
	}
	expect.NoError(t, held.Close())
	again, err := take(first, 2, 1)
	expect.NoErrorf(t, err, "lease released ranges")
	expect.Success(t, again.Close())
}
