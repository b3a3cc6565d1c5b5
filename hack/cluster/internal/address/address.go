// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package address assigns addresses and names to the nodes of a cluster.
//
// The number of a node determines its addresses, so that they never change and are not stored. The address
// ranges are private. Package network checks that no route of the machine overlaps them.
package address

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MaxNodes is the maximum number of nodes. A node uses one address and one /24 range.
const MaxNodes = 99

// Bridge is the name of the bridge that connects the nodes.
const Bridge = "seamark0"

// Ports of the control plane on Host.
const (
	// APIServerPort is the port of the Kubernetes API.
	APIServerPort = 6443
	// EtcdPort is etcd's port for clients.
	EtcdPort = 2379
	// EtcdPeerPort is etcd's port for peers.
	EtcdPeerPort = 2380
)

// Host returns the machine's address on the bridge, the only one on which the control plane listens.
func Host() netip.Addr { return netip.AddrFrom4([4]byte{10, 231, 0, 1}) }

// NodeRange returns the range of Host and the addresses of the nodes.
func NodeRange() netip.Prefix { return netip.PrefixFrom(Host(), 24).Masked() }

// PodRange returns the range that contains the pod ranges of all nodes.
func PodRange() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 232, 0, 0}), 16)
}

// ServiceRange returns the range of the cluster IPs of Services.
func ServiceRange() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 233, 0, 0}), 16)
}

// APIService returns the cluster IP of the Service `kubernetes`, the first of the range.
func APIService() netip.Addr { return ServiceRange().Addr().Next() }

// DNSService returns the address of the name server in the resolv.conf of pods. There is no name server: lookups
// fail at once.
func DNSService() netip.Addr { return netip.AddrFrom4([4]byte{10, 233, 0, 10}) }

// APIServer returns the URL of the API server.
func APIServer() string { return fmt.Sprintf("https://%s:%d", Host(), APIServerPort) }

// Node is the addresses and names of a node.
type Node struct {
	// Name is the name of the Node object, `node-<number>`.
	Name string
	// IP is the address on the bridge and the InternalIP of the Node object.
	IP netip.Addr
	// Pods is the range of the addresses of pods.
	Pods netip.Prefix
	// NetNS is the name of the network namespace in `ip netns`.
	NetNS string
	// Link is the name of the machine's end of the veth pair.
	Link string
}

// NewNode returns the node with a number from 1 to MaxNodes.
func NewNode(number int) (Node, error) {
	if number < 1 || number > MaxNodes {
		return Node{}, fmt.Errorf("node number %d is invalid: must be 1 to %d", number, MaxNodes)
	}
	return Node{
		Name:  fmt.Sprintf("node-%d", number),
		IP:    netip.AddrFrom4([4]byte{10, 231, 0, byte(100 + number)}),
		Pods:  netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 232, byte(number), 0}), 24),
		NetNS: fmt.Sprintf("seamark-node-%d", number),
		Link:  fmt.Sprintf("seamark-%d", number),
	}, nil
}

// Nodes returns the nodes 1 to count.
func Nodes(count int) ([]Node, error) {
	if count < 1 || count > MaxNodes {
		return nil, fmt.Errorf("number of nodes %d is invalid: must be 1 to %d", count, MaxNodes)
	}
	var nodes []Node
	for number := 1; number <= count; number++ {
		node, err := NewNode(number)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// ParseNode returns the node with a name.
func ParseNode(name string) (Node, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "node-"))
	if err != nil {
		return Node{}, fmt.Errorf("node name %q is invalid: must be node-<number>", name)
	}
	return NewNode(number)
}
