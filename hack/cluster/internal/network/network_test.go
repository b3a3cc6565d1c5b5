// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"testing"

	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
)

func TestConflict(t *testing.T) {
	tests := map[string]struct {
		destination string
		want        string
	}{
		"default route":      {destination: "0.0.0.0/0"},
		"other range":        {destination: "10.0.0.0/16"},
		"range of the nodes": {destination: "10.231.0.0/24", want: "10.231.0.0/24"},
		"range of one node":  {destination: "10.232.7.0/24", want: "10.232.0.0/16"},
		"larger range":       {destination: "10.0.0.0/8", want: "10.231.0.0/24"},
		"one Service":        {destination: "10.233.0.1/32", want: "10.233.0.0/16"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, destination, err := net.ParseCIDR(test.destination)
			expect.NoError(t, err)
			got, ok := conflict(*destination)
			if ok != (test.want != "") || ok && got.String() != test.want {
				t.Errorf("got %s, %t", got, ok)
			}
		})
	}
}
