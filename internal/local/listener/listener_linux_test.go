// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestFindOwner(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.64.0.2:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		t.Run(address, func(t *testing.T) {
			open, err := net.Listen("tcp", address)
			expect.NoError(t, err)
			defer open.Close()
			all, err := All()
			expect.NoError(t, err)
			target := netip.MustParseAddrPort(open.Addr().String())
			answering := Answering(all, target)
			if len(answering) != 1 || answering[0].Address != target || answering[0].User != os.Getuid() {
				t.Fatalf("listeners %v, want one on %s", answering, target)
			}
			if !MayOwn(os.Getpid(), answering[0]) {
				t.Error("this process does not own its listener")
			}
			owners := Owners(answering[0])
			if len(owners) != 1 || owners[0].PID != os.Getpid() || owners[0].Name == "" {
				t.Errorf("owners are %v, want this process", owners)
			}
		})
	}
}
