// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"k8s.io/apimachinery/pkg/util/version"
)

// Runtime identifies a container runtime.
type Runtime struct {
	// Name is the name of the program, such as "containerd" or "cri-o".
	Name string
	// Version is its version as the runtime reports it, such as "v2.2.0" or "1.7.24~ds1".
	Version string
}

// String returns the name and the version.
func (r Runtime) String() string { return r.Name + " " + r.Version }

// broadcasts reports whether the runtime sends each container event to all subscribers. The
// stream of containerd 1.7 delivers an event to only one of them, which may be a subscriber
// that no longer exists, so that each subscriber misses events and takes events from the
// others. The stream of an unknown runtime or version is not used either.
func (r Runtime) broadcasts() bool {
	switch r.Name {
	case "containerd":
		parsed, err := version.ParseGeneric(r.Version)
		return err == nil && parsed.Major() >= 2 //nolint:mnd // the first major version that broadcasts
	case "cri-o":
		return true
	default:
		return false
	}
}
