// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/chaos/proxy"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestOutage checks that probing continues while the API server can't be reached, and that the
// current states and the current plan are transferred afterwards.
func TestOutage(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	w.run("p")
	w.setAnswer("yes", answer{stdout: "before"})
	w.setAnswer("other", answer{stdout: "other"})
	w.plan(w.pod("p", "yes"))
	line, err := proxy.New(proxy.Options{Upstream: w.rights})
	expect.NoError(t, err)
	// The agent stops first.
	t.Cleanup(func() { _ = line.Close() })
	config, err := line.Config("agent")
	expect.NoError(t, err)
	config.BearerToken = w.rights.BearerToken
	w.startAgentWith(config)
	w.reported("p yes", succeeded, "before")
	w.eventually(func() (bool, string) { return len(w.events()) == 1, fmt.Sprintf("events: %v", w.events()) })

	expect.NoError(t, line.Set(proxy.Fault{Kind: proxy.Down}))
	w.setAnswer("yes", answer{stdout: "in between", code: 1})
	w.ranAgain("yes", 4)
	w.setAnswer("yes", answer{stdout: "at last", code: 1})
	w.plan(w.pod("p", "yes", "other"))
	w.ranAgain("yes", 4)
	if state := w.states()["p yes"]; state.State != succeeded {
		t.Fatalf("a state was reported while the connection was cut: %+v", state)
	}
	line.Clear()
	soon := await.Poll{Interval: 20 * time.Millisecond, Timeout: 15 * time.Second}
	soon.Until(w, "the current states are reported", func(context.Context) (string, error) {
		all := w.states()
		yes, other := all["p yes"], all["p other"]
		if yes.State == failed && yes.Message == "at last" && other.State == succeeded && other.Message == "other" {
			return "", nil
		}
		return fmt.Sprintf("%+v", all), nil
	})
	w.eventually(func() (bool, string) {
		events := w.events()
		return len(events) == 3, "events: " + fmt.Sprint(events)
	})
}
