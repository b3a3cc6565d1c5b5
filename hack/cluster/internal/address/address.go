// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package address is the cluster's plan of addresses and names.
//
// Everything follows from a node's number, so that a node's addresses never change and the plan needs
// no store. The ranges are private and belong to the cluster alone: the machine's own links are
// looked at before use (package network).
package address

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MaxNodes is the most nodes that one cluster can have: a node takes one address and one /24 range.
const MaxNodes = 99

// Bridge is the machine's link that joins the nodes.
const Bridge = "seamark0"

// Ports of the control plane on Host.
const (
	// APIServerPort serves the Kubernetes API.
	APIServerPort = 6443
	// EtcdPort serves etcd's clients.
	EtcdPort = 2379
	// EtcdPeerPort is etcd's own.
	EtcdPeerPort = 2380
)

// Host is the machine's address on the bridge. The control plane listens there and nowhere else.
func Host() netip.Addr { return netip.AddrFrom4([4]byte{10, 231, 0, 1}) }

// NodeRange holds Host and the addresses of the nodes.
func NodeRange() netip.Prefix { return netip.PrefixFrom(Host(), 24).Masked() }

// PodRange holds the pod ranges of all nodes.
func PodRange() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 232, 0, 0}), 16)
}

// ServiceRange holds the cluster addresses of Services.
func ServiceRange() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 233, 0, 0}), 16)
}

// APIService is the cluster address of the Service `kubernetes`: the first of its range.
func APIService() netip.Addr { return ServiceRange().Addr().Next() }

// DNSService is where pods look for a name server. There is none: names of Services do not resolve,
// and the lookup fails at once.
func DNSService() netip.Addr { return netip.AddrFrom4([4]byte{10, 233, 0, 10}) }

// APIServer is the URL of the API server.
func APIServer() string { return fmt.Sprintf("https://%s:%d", Host(), APIServerPort) }

// Node is one node's share of the plan.
type Node struct {
	// Name is the name of the Node object, `node-<number>`.
	Name string
	// IP is the node's address on the bridge and the InternalIP of its Node object.
	IP netip.Addr
	// Pods is the range from which its pods get their addresses.
	Pods netip.Prefix
	// NetNS is the name of its network namespace, as `ip netns` lists it.
	NetNS string
	// Link is the machine's end of its cable.
	Link string
}

// NewNode plans node number, from 1 to MaxNodes.
func NewNode(number int) (Node, error) {
	if number < 1 || number > MaxNodes {
		return Node{}, fmt.Errorf("node number %d: it is 1 to %d", number, MaxNodes)
	}
	return Node{
		Name:  fmt.Sprintf("node-%d", number),
		IP:    netip.AddrFrom4([4]byte{10, 231, 0, byte(100 + number)}),
		Pods:  netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 232, byte(number), 0}), 24),
		NetNS: fmt.Sprintf("seamark-node-%d", number),
		Link:  fmt.Sprintf("seamark-%d", number),
	}, nil
}

// Nodes plans the nodes 1 to count.
func Nodes(count int) ([]Node, error) {
	if count < 1 || count > MaxNodes {
		return nil, fmt.Errorf("%d nodes: a cluster has 1 to %d", count, MaxNodes)
	}
	nodes := make([]Node, 0, count)
	for number := 1; number <= count; number++ {
		node, err := NewNode(number)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// ParseNode finds the plan of a node by its name.
func ParseNode(name string) (Node, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "node-"))
	if err != nil {
		return Node{}, fmt.Errorf("node name %q: it is node-<number>", name)
	}
	return NewNode(number)
}
