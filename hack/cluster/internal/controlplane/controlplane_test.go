// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/hack/cluster/internal/address"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/process"
)

func daemons(dir layout.Dir) []process.Spec {
	return []process.Spec{Etcd(dir), APIServer(dir), ControllerManager(dir), Scheduler(dir)}
}

func TestDaemonsListenOnTheBridgeOnly(t *testing.T) {
	for _, spec := range daemons("/c") {
		bound := 0
		for _, arg := range spec.Args {
			name, value, _ := strings.Cut(arg, "=")
			if name != "--bind-address" && name != "--listen-client-urls" && name != "--listen-peer-urls" {
				continue
			}
			bound++
			if !strings.Contains(value, address.Host().String()) {
				t.Errorf("%s listens on %s", spec.Name, value)
			}
		}
		if bound == 0 {
			t.Errorf("%s has no address to listen on", spec.Name)
		}
	}
}
