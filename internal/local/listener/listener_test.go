// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 547 1 0000000059f63120 100 0 0 10 0
   1: 0200407F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 548 1 0000000059f63120 100 0 0 10 0
   2: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 549 1 0000000059f63120 100 0 0 10 0
   3: 00000000000000000000000000000000:1F92 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 550
   4: 0000000000000000FFFF00000200407F:1F93 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 551
   5: invalid
`

func TestParse(t *testing.T) {
	want := []Listener{
		{netip.MustParseAddrPort("0.0.0.0:2024"), 1000, "547"},
		{netip.MustParseAddrPort("127.64.0.2:8080"), 0, "548"},
		{netip.MustParseAddrPort("[::]:8082"), 0, "550"},
		{netip.MustParseAddrPort("127.64.0.2:8083"), 0, "551"},
	}
	if diff := cmp.Diff(want, Parse([]byte(table)), cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
}

func TestAnswering(t *testing.T) {
	listen := func(address, inode string) Listener {
		return Listener{Address: netip.MustParseAddrPort(address), Inode: inode}
	}
	for name, test := range map[string]struct {
		all  []Listener
		want string
	}{
		"none":                   {},
		"another port":           {[]Listener{listen("0.0.0.0:81", "x")}, ""},
		"another address":        {[]Listener{listen("127.0.0.1:80", "x")}, ""},
		"this address":           {[]Listener{listen("127.64.0.2:80", "x")}, "x"},
		"all addresses":          {[]Listener{listen("0.0.0.0:80", "x")}, "x"},
		"all IPv6 addresses":     {[]Listener{listen("[::]:80", "x")}, "x"},
		"all IPv4 and all IPv6":  {[]Listener{listen("[::]:80", "x"), listen("0.0.0.0:80", "y")}, "y"},
		"shared port":            {[]Listener{listen("0.0.0.0:80", "x"), listen("0.0.0.0:80", "y")}, "xy"},
		"this and all addresses": {[]Listener{listen("0.0.0.0:80", "x"), listen("127.64.0.2:80", "y")}, "y"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, l := range Answering(test.all, netip.MustParseAddrPort("127.64.0.2:80")) {
				got += l.Inode
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
