// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"testing"

	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
)

func TestPlanDoesNotOverlap(t *testing.T) {
	nodes, err := Nodes(MaxNodes)
	expect.NoError(t, err)
	taken := map[netip.Addr]string{Host(): "the machine"}
	ranges := []netip.Prefix{NodeRange(), ServiceRange()}
	for _, node := range nodes {
		if owner, ok := taken[node.IP]; ok {
			t.Errorf("%s has the address of %s", node.Name, owner)
		}
		taken[node.IP] = node.Name
		if !NodeRange().Contains(node.IP) {
			t.Errorf("%s is outside the node range: %s", node.Name, node.IP)
		}
		if !PodRange().Contains(node.Pods.Addr()) {
			t.Errorf("the pods of %s are outside the pod range: %s", node.Name, node.Pods)
		}
		for _, other := range ranges {
			if other.Overlaps(node.Pods) {
				t.Errorf("the pods of %s overlap %s", node.Name, other)
			}
		}
		ranges = append(ranges, node.Pods)
		// The kernel's limit for link names is 15 bytes.
		if len(node.Link) > 15 {
			t.Errorf("link name %q is too long", node.Link)
		}
	}
	for _, service := range []netip.Addr{APIService(), DNSService()} {
		if !ServiceRange().Contains(service) {
			t.Errorf("%s is outside the Service range", service)
		}
	}
}

func TestParseNode(t *testing.T) {
	nodes, err := Nodes(MaxNodes)
	expect.NoError(t, err)
	for _, want := range nodes {
		if got, err := ParseNode(want.Name); err != nil || got != want {
			t.Errorf("%s: got %v, error %v", want.Name, got, err)
		}
	}
	for _, name := range []string{"", "node-", "node-0", "node-x", "node-100", "other"} {
		if got, err := ParseNode(name); err == nil {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
