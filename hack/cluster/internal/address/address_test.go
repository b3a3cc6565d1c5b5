// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestNewNode(t *testing.T) {
	tests := map[string]struct {
		number  int
		want    Node
		wantErr bool
	}{
		"first": {number: 1, want: Node{
			Name: "node-1", IP: netip.MustParseAddr("10.231.0.101"), Pods: netip.MustParsePrefix("10.232.1.0/24"),
			NetNS: "seamark-node-1", Link: "seamark-1",
		}},
		"last": {number: MaxNodes, want: Node{
			Name: "node-99", IP: netip.MustParseAddr("10.231.0.199"), Pods: netip.MustParsePrefix("10.232.99.0/24"),
			NetNS: "seamark-node-99", Link: "seamark-99",
		}},
		"zero":     {number: 0, wantErr: true},
		"too many": {number: MaxNodes + 1, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := NewNode(test.number)
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error: %t", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanDoesNotOverlap(t *testing.T) {
	nodes, err := Nodes(MaxNodes)
	if err != nil {
		t.Fatal(err)
	}
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

func TestNodes(t *testing.T) {
	for _, count := range []int{-1, 0, MaxNodes + 1} {
		if _, err := Nodes(count); err == nil {
			t.Errorf("no error for %d nodes", count)
		}
	}
	nodes, err := Nodes(3)
	if err != nil || len(nodes) != 3 || nodes[2].Name != "node-3" {
		t.Errorf("nodes = %v, error = %v", nodes, err)
	}
}

func TestParseNode(t *testing.T) {
	for number := 1; number <= MaxNodes; number++ {
		want, err := NewNode(number)
		if err != nil {
			t.Fatal(err)
		}
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
