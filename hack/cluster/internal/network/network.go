// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package network connects the nodes of a cluster to one bridge.
//
// Every node has a network namespace with its own ports, packet filter and container networks, as a machine has.
// A veth pair connects it to the bridge. Outside of the namespaces there are only the bridge, one end of each
// pair, and routes over the bridge. Removing these restores the state of the machine.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
)

// nodeLink is the name of the end of the veth pair in a node.
const nodeLink = "eth0"

// NamespacePath returns the path of a named network namespace.
func NamespacePath(name string) string { return "/run/netns/" + name }

// Check returns an error if a route of the machine, except those of the cluster, overlaps an address range of
// the plan.
func Check() error {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	own := -1
	if bridge, err := netlink.LinkByName(address.Bridge); err == nil {
		own = bridge.Attrs().Index
	}
	for _, route := range routes {
		if route.Dst == nil || route.LinkIndex == own || route.Type == syscall.RTN_UNREACHABLE {
			continue
		}
		if taken, ok := conflict(*route.Dst); ok {
			return fmt.Errorf("the machine has a route to %s, which overlaps the range %s of the cluster: "+
				"remove the route or its link", route.Dst, taken)
		}
	}
	return nil
}

// conflict returns the range of the plan that overlaps the destination of a route. It ignores default routes.
func conflict(destination net.IPNet) (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(destination.IP.To4())
	ones, _ := destination.Mask.Size()
	if !ok || ones == 0 {
		return netip.Prefix{}, false
	}
	prefix := netip.PrefixFrom(addr, ones)
	for _, taken := range []netip.Prefix{address.NodeRange(), address.PodRange(), address.ServiceRange()} {
		if taken.Overlaps(prefix) {
			return taken, true
		}
	}
	return netip.Prefix{}, false
}

// EnsureBridge creates the bridge, with the machine's address.
func EnsureBridge() error {
	bridge, err := ensureLink(&netlink.Bridge{LinkAttrs: named(address.Bridge)})
	if err != nil {
		return err
	}
	local := netip.PrefixFrom(address.Host(), address.NodeRange().Bits())
	if err := netlink.AddrReplace(bridge, &netlink.Addr{IPNet: ipNet(local)}); err != nil {
		return fmt.Errorf("set the address of %s: %w", address.Bridge, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("set %s up: %w", address.Bridge, err)
	}
	// Nodes send packets for unknown Services to the machine. If it forwards, it answers at once that the
	// destination is unreachable; otherwise, clients would wait for a timeout.
	forwarding := "/proc/sys/net/ipv4/conf/" + address.Bridge + "/forwarding"
	if err := os.WriteFile(forwarding, []byte("1"), 0o644); err != nil {
		return fmt.Errorf("enable forwarding on %s: %w", address.Bridge, err)
	}
	if err := netlink.RouteReplace(unreachableServices()); err != nil {
		return fmt.Errorf("route the Service range: %w", err)
	}
	return nil
}

func unreachableServices() *netlink.Route {
	return &netlink.Route{Dst: ipNet(address.ServiceRange()), Type: syscall.RTN_UNREACHABLE}
}

func named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

func ensureLink(wanted netlink.Link) (netlink.Link, error) {
	name := wanted.Attrs().Name
	if link, err := netlink.LinkByName(name); err == nil {
		return link, nil
	}
	if err := netlink.LinkAdd(wanted); err != nil {
		return nil, fmt.Errorf("add link %s: %w", name, err)
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find link %s: %w", name, err)
	}
	return link, nil
}

// EnsureNode creates the namespace of a node, its veth pair, and the routes between it, the machine and its peers.
func EnsureNode(node address.Node, peers []address.Node) error {
	space, err := ensureNamespace(node.NetNS)
	if err != nil {
		return err
	}
	defer func() { _ = space.Close() }()
	inside, err := netlink.NewHandleAt(space)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", node.NetNS, err)
	}
	defer inside.Close()
	if err := plug(node, space, inside); err != nil {
		return err
	}
	if err := configure(node, peers, inside); err != nil {
		return err
	}
	route := &netlink.Route{Dst: ipNet(node.Pods), Gw: node.IP.AsSlice()}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("route to the pods of %s: %w", node.Name, err)
	}
	return nil
}

// plug creates the veth pair between the bridge and the namespace, unless it exists.
func plug(node address.Node, space netns.NsHandle, inside *netlink.Handle) error {
	if _, err := inside.LinkByName(nodeLink); err == nil {
		return nil
	}
	attrs := named(node.Link)
	cable := &netlink.Veth{LinkAttrs: attrs, PeerName: nodeLink, PeerNamespace: netlink.NsFd(space)}
	outer, err := ensureLink(cable)
	if err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(address.Bridge)
	if err != nil {
		return fmt.Errorf("find link %s: %w", address.Bridge, err)
	}
	if err := netlink.LinkSetMaster(outer, bridge); err != nil {
		return fmt.Errorf("attach %s to %s: %w", node.Link, address.Bridge, err)
	}
	if err := netlink.LinkSetUp(outer); err != nil {
		return fmt.Errorf("set %s up: %w", node.Link, err)
	}
	return nil
}

// configure sets the addresses and routes in a node.
func configure(node address.Node, peers []address.Node, inside *netlink.Handle) error {
	for _, name := range []string{"lo", nodeLink} {
		link, err := inside.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find %s of %s: %w", name, node.Name, err)
		}
		if err := inside.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s of %s up: %w", name, node.Name, err)
		}
		if name != nodeLink {
			continue
		}
		own := netip.PrefixFrom(node.IP, address.NodeRange().Bits())
		if err := inside.AddrReplace(link, &netlink.Addr{IPNet: ipNet(own)}); err != nil {
			return fmt.Errorf("set the address of %s: %w", node.Name, err)
		}
	}
	// kube-proxy translates the address of a Service only if there is a route to it.
	routes := []*netlink.Route{{Dst: ipNet(address.ServiceRange()), Gw: address.Host().AsSlice()}}
	for _, peer := range peers {
		if peer != node {
			routes = append(routes, &netlink.Route{Dst: ipNet(peer.Pods), Gw: peer.IP.AsSlice()})
		}
	}
	for _, route := range routes {
		if err := inside.RouteReplace(route); err != nil {
			return fmt.Errorf("route %s from %s: %w", route.Dst, node.Name, err)
		}
	}
	return nil
}

// ensureNamespace opens the named namespace. If it does not exist, ensureNamespace creates it and enables
// forwarding. The caller closes the handle.
func ensureNamespace(name string) (netns.NsHandle, error) {
	if space, err := netns.GetFromName(name); err == nil {
		return space, nil
	}
	runtime.LockOSThread()
	outer, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return netns.None(), fmt.Errorf("find the current network namespace: %w", err)
	}
	defer func() { _ = outer.Close() }()
	space, err := netns.NewNamed(name)
	if err == nil {
		err = os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
	}
	if back := netns.Set(outer); back != nil {
		// The thread stays locked and ends with the goroutine, because no other goroutine may run in this namespace.
		return netns.None(), fmt.Errorf("leave network namespace %s: %w", name, back)
	}
	runtime.UnlockOSThread()
	if err != nil {
		return netns.None(), fmt.Errorf("create network namespace %s: %w", name, err)
	}
	return space, nil
}

// RemoveNode removes the veth pair, the namespace and the routes of a node. It returns what it removed.
func RemoveNode(node address.Node) ([]string, error) {
	var removed []string
	done, err := removeLink(node.Link)
	if err != nil {
		return nil, err
	}
	removed = append(removed, done...)
	err = netns.DeleteNamed(node.NetNS)
	switch {
	case err == nil:
		removed = append(removed, "network namespace "+node.NetNS)
	case errors.Is(err, syscall.EINVAL):
		// The name exists, but the namespace does not.
		if err := os.Remove(NamespacePath(node.NetNS)); err != nil {
			return nil, fmt.Errorf("remove network namespace %s: %w", node.NetNS, err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("remove network namespace %s: %w", node.NetNS, err)
	}
	route := &netlink.Route{Dst: ipNet(node.Pods), Gw: node.IP.AsSlice()}
	if err := removeRoute(route); err != nil {
		return nil, err
	}
	return removed, nil
}

// RemoveBridge removes the bridge and its routes. It returns what it removed.
func RemoveBridge() ([]string, error) {
	if err := removeRoute(unreachableServices()); err != nil {
		return nil, err
	}
	return removeLink(address.Bridge)
}

func removeLink(name string) ([]string, error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find link %s: %w", name, err)
	}
	if err := netlink.LinkDel(link); err != nil {
		return nil, fmt.Errorf("remove link %s: %w", name, err)
	}
	return []string{"link " + name}, nil
}

func removeRoute(route *netlink.Route) error {
	err := netlink.RouteDel(route)
	if err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.ENETUNREACH) {
		return fmt.Errorf("remove the route to %s: %w", route.Dst, err)
	}
	return nil
}
