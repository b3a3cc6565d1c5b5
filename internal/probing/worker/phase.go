// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// PhaseOf returns the position of a probe's runs within its period, in [0, 1). It is a hash
// of the key: the same after a restart of the agent, and evenly distributed over the probes
// of a node and of a cluster.
func PhaseOf(key probeid.Key) float64 {
	const bits = 53 // The precision of a float64.
	hash := sha256.New()
	for _, part := range []string{string(key.PodUID), key.Name, key.Marker, key.Probe} {
		// No part contains a NUL byte.
		_, _ = hash.Write(append([]byte(part), 0))
	}
	return float64(binary.BigEndian.Uint64(hash.Sum(nil))>>(64-bits)) / (1 << bits)
}
