// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/local/listener"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// listeners finds who listens on the ports of pods. It is safe for concurrent use.
type listeners struct {
	keeper *process.Keeper
	// names and addresses are those of the pods. They do not change.
	names     map[types.UID]string
	addresses map[types.UID]netip.Addr
}

// newListeners returns the listeners for pods that have their addresses.
func newListeners(keeper *process.Keeper, pods []*pod) *listeners {
	l := &listeners{keeper: keeper, names: map[types.UID]string{}, addresses: map[types.UID]netip.Addr{}}
	for _, p := range pods {
		l.names[p.object.UID] = p.object.Name
		// The zero address, which no probe uses, if it is invalid.
		l.addresses[p.object.UID], _ = netip.ParseAddr(p.object.Status.PodIP)
	}
	return l
}

// podOf returns the pod of a container's ID, which begins with the UID of the pod.
func podOf(containerID string) types.UID {
	const length = len("00000000-0000-0000-0000-000000000000")
	return types.UID(containerID[:min(length, len(containerID))])
}

// foreign says who answers on an address of a pod instead of the pod. It is empty if the
// pod answers, if nobody does, if the address is not the pod's, or if it is not known.
func (l *listeners) foreign(uid types.UID, target netip.AddrPort) string {
	if l.addresses[uid] != target.Addr() {
		return ""
	}
	all, err := listener.All()
	if err != nil {
		return ""
	}
	var pids []int
	for pid, set := range l.keeper.Sets() {
		if podOf(set) == uid {
			pids = append(pids, pid)
		}
	}
	for _, answering := range listener.Answering(all, target) {
		if slices.ContainsFunc(pids, func(pid int) bool { return listener.MayOwn(pid, answering) }) {
			continue
		}
		// Several processes share an address with SO_REUSEPORT: any of them may answer.
		if who := l.ownerOf(answering); !who.hidden {
			return fmt.Sprintf("%s listens on %s: %s", who.name, answering.Address, who.workaround())
		}
	}
	return ""
}

// owner is the process that listens on a port.
type owner struct {
	// name names the process, and the pod that it belongs to.
	name string
	// pod is whether it belongs to a pod of the run. hidden is whether it may belong to any
	// pod: this user's process can't be found, or it was orphaned before its pod was known.
	pod, hidden bool
}

// workaround says what to do about a port that the owner has taken.
func (o owner) workaround() string {
	if o.pod {
		return "let each server listen on the address of its pod, which a variable with fieldRef status.podIP contains, instead of all addresses"
	}
	return "stop it, or use another port"
}

func (l *listeners) ownerOf(found listener.Listener) owner {
	owners := listener.Owners(found)
	if len(owners) == 0 {
		return owner{name: listener.Process{User: found.User}.String(), hidden: found.User == os.Getuid()}
	}
	set, ours := l.keeper.Sets()[owners[0].PID]
	if name, known := l.names[podOf(set)]; known {
		return owner{name: fmt.Sprintf("pod %s (%s)", name, owners[0]), pod: true}
	}
	return owner{name: owners[0].String(), hidden: ours}
}

// takenByOthers describes the first of the pod's declared ports that another process has
// taken. It is empty if there is none.
func (l *listeners) takenByOthers(object *corev1.Pod) string {
	for _, used := range portsOf(object) {
		if used.protocol != corev1.ProtocolTCP {
			continue
		}
		target := netip.AddrPortFrom(l.addresses[object.UID], uint16(used.number))
		if who := l.foreign(object.UID, target); who != "" {
			return fmt.Sprintf("port %d is taken: %s", used.number, who)
		}
	}
	return ""
}

// check returns an error for each port of the pods that is taken before they start.
func (l *listeners) check(pods []*pod, markers []*plan.Marker) error {
	all, err := listener.All()
	if err != nil {
		return err
	}
	return takenPorts(pods, markers, all, l.ownerOf, canListen)
}

// canListen reports whether a process can listen on an address, although another listens on
// all IPv6 addresses: that listener may not accept IPv4 connections.
func canListen(address netip.AddrPort) bool {
	open, err := net.Listen("tcp4", address.String())
	if err != nil {
		return !errors.Is(err, syscall.EADDRINUSE)
	}
	// Closing a listener without connections loses nothing.
	_ = open.Close()
	return true
}

// takenPorts returns an error for each declared or probed TCP port of the pods on whose
// address another process already listens.
func takenPorts(pods []*pod, markers []*plan.Marker, all []listener.Listener,
	ownerOf func(listener.Listener) owner, canListen func(netip.AddrPort) bool,
) error {
	var errs []error
	for _, p := range pods {
		address, err := netip.ParseAddr(p.object.Status.PodIP)
		if err != nil {
			continue
		}
		ports := portsOf(p.object)
		for _, planned := range plan.Pod(initialized(p.object), markers, plan.KubernetesDefaults()).Probes {
			ports = append(ports, port{probedPort(&planned.Plan.Probe.ProbeHandler), corev1.ProtocolTCP})
		}
		slices.SortFunc(ports, func(a, b port) int { return int(a.number - b.number) })
		for _, used := range slices.Compact(ports) {
			if used.number <= 0 || used.protocol != corev1.ProtocolTCP {
				continue
			}
			target := netip.AddrPortFrom(address, uint16(used.number))
			for _, l := range listener.Answering(all, target) {
				if l.Address.Addr().Is6() && address.Is4() && canListen(target) {
					break
				}
				who := ownerOf(l)
				errs = append(errs, fmt.Errorf("port %d of pod %s is taken: %s listens on %s: %s",
					used.number, p.object.Name, who.name, l.Address, who.workaround()))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// newProbers returns the probers of a run. Commands run with commands, in the containers of execs.
func newProbers(commands *exec.Prober, execs *execs, listeners *listeners, version string) probing.Set {
	set := probers.New(commands, slots.New(probers.NetworkSlots, nil), version)
	for handler, prober := range set {
		if handler != probing.HandlerExec {
			set[handler] = networkProber{prober, execs.runs, listeners.foreign}
		}
	}
	return set
}

// networkProber runs a network probe of a container. In a cluster, only the container can
// answer on its address. Here, any process of the machine can.
type networkProber struct {
	probing.Prober
	runs func(containerID string) bool
	// foreign says who listens on an address instead of the pod. It is empty if nobody does.
	foreign func(pod types.UID, target netip.AddrPort) string
}

// Probe runs the probe. It fails if a process outside the pod answered. It returns an error
// if the container has ended meanwhile: then another process may have answered.
func (p networkProber) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	outcome, err := p.Prober.Probe(ctx, target)
	if err != nil {
		return outcome, err
	}
	if address, ok := addressOf(target); ok {
		if who := p.foreign(podOf(target.ContainerID), address); who != "" {
			message := fmt.Sprintf("another process answers on port %d: %s", address.Port(), who)
			outcome = probing.Outcome{Message: text.Truncate(message, probing.MaxMessageBytes)}
		}
	}
	if !p.runs(target.ContainerID) {
		return probing.Outcome{}, fmt.Errorf("container %s ended", target.ContainerID)
	}
	return outcome, nil
}

// addressOf returns the address that a probe connects to, unless it is a name.
func addressOf(target probing.Target) (netip.AddrPort, bool) {
	var address string
	switch {
	case target.HTTP != nil:
		address = target.HTTP.URL.Host
	case target.TCP != nil:
		address = target.TCP.Address
	case target.GRPC != nil:
		address = target.GRPC.Address
	}
	parsed, err := netip.ParseAddrPort(address)
	return parsed, err == nil
}
