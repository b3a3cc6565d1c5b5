// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// An agent that starts before the CRDs are served does not exit, and works when they are served.
func TestAgentStartsBeforeCRDs(t *testing.T) {
	own := env.Start(t, env.NoCRDs())
	w := newWorld(t, own, critest.Streamed)
	stop := w.startAgent()
	expect.NoError(t, own.InstallCRDs())
	w.run("a")
	w.plan(w.pod("a", "p"))
	w.reported("a p", succeeded, "")
	stop()
}
