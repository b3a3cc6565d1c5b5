// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
)

// Runtime is a container runtime of nodes.
type Runtime string

const (
	// RuntimeContainerd is the containerd 2 that this program builds. It streams CRI container events to all
	// subscribers.
	RuntimeContainerd Runtime = "containerd"
	// RuntimeContainerd17 is the containerd 1.7 that this program builds. It streams each event to one subscriber.
	RuntimeContainerd17 Runtime = "containerd-1.7"
	// RuntimeDebian is Debian's containerd 1.6, which does not stream events.
	RuntimeDebian Runtime = "debian"
)

// folder returns the folder of the runtime's programs, relative to the folder of all programs.
func (r Runtime) folder() string {
	if r == RuntimeContainerd {
		return ""
	}
	return string(r)
}

// Runtimes are the container runtimes of the nodes of a cluster, in their order. If there are more nodes, they
// continue with the first runtime. There is at least one.
type Runtimes []Runtime

// ParseRuntimes returns the runtimes with the given names.
func ParseRuntimes(names []string) (Runtimes, error) {
	var runtimes Runtimes
	for _, name := range names {
		switch runtime := Runtime(name); runtime {
		case RuntimeContainerd, RuntimeContainerd17, RuntimeDebian:
			runtimes = append(runtimes, runtime)
		default:
			return nil, fmt.Errorf("runtime: %q is invalid: must be %s, %s or %s", name, RuntimeContainerd, RuntimeContainerd17, RuntimeDebian)
		}
	}
	return runtimes, nil
}

// Of returns the runtime of a node. The index of the first node is 0.
func (r Runtimes) Of(index int) Runtime { return r[index%len(r)] }

// Among reports whether one of the first nodes has a runtime.
func (r Runtimes) Among(nodes int, runtime Runtime) bool {
	return slices.Contains(r[:min(nodes, len(r))], runtime)
}
