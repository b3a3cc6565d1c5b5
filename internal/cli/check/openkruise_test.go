// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/cli/check"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// Whoever can create the namespace can hold the lease.
func TestLeaseOfATenant(t *testing.T) {
	f := healthy(t)
	f.Kruise.Lease.Value, f.Kruise.Mutating.Value = new(lease("kruise-manager", "tenant", time.Second)), builders.OpenKruiseWebhook("other")
	want := "warning openkruise: tenant holds the lease of OpenKruise's manager, but no webhook of kruise-mutating-webhook-configuration has a Service of " +
		"kruise-system: Seamark does not regard it as OpenKruise\n  find out who renews the lease: kubectl -n kruise-system get lease kruise-manager -o yaml\n"
	expect.Equal(t, "results that are not ok", want, lines(check.Run(f), false))
}
