// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"net"
	"net/netip"
	"os"
	"testing"
)

func TestFindOwner(t *testing.T) {
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	target := netip.MustParseAddrPort(open.Addr().String())
	answering := Answering(all, target)
	if len(answering) != 1 {
		t.Fatalf("%d listeners on %s, want 1", len(answering), target)
	}
	if owns, sure := Owns(os.Getpid(), answering[0]); !owns || !sure {
		t.Errorf("this process owns its listener: %t, sure: %t", owns, sure)
	}
	owners := Owners(answering[0])
	if len(owners) != 1 || owners[0].PID != os.Getpid() || owners[0].Name == "" {
		t.Errorf("owners are %v, want this process", owners)
	}
}
