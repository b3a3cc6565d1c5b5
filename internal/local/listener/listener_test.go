// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"net/netip"
	"strconv"
	"testing"
)

func TestAnswering(t *testing.T) {
	listen := func(address string, inode uint64) Listener {
		return Listener{Address: netip.MustParseAddrPort(address), Inode: inode}
	}
	for name, test := range map[string]struct {
		all  []Listener
		want string
	}{
		"none":                   {},
		"another port":           {[]Listener{listen("0.0.0.0:81", 1)}, ""},
		"another address":        {[]Listener{listen("127.0.0.1:80", 1)}, ""},
		"this address":           {[]Listener{listen("127.64.0.2:80", 1)}, "1"},
		"all addresses":          {[]Listener{listen("0.0.0.0:80", 1)}, "1"},
		"all IPv6 addresses":     {[]Listener{listen("[::]:80", 1)}, "1"},
		"all IPv4 and all IPv6":  {[]Listener{listen("[::]:80", 1), listen("0.0.0.0:80", 2)}, "2"},
		"shared port":            {[]Listener{listen("0.0.0.0:80", 1), listen("0.0.0.0:80", 2)}, "12"},
		"this and all addresses": {[]Listener{listen("0.0.0.0:80", 1), listen("127.64.0.2:80", 2)}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, l := range Answering(test.all, netip.MustParseAddrPort("127.64.0.2:80")) {
				got += strconv.FormatUint(l.Inode, 10)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
