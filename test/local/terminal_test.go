// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/process"
	"github.com/seamark-dev/seamark/test/terminal"
)

// On a terminal the output is a table. Keys filter it, pause it and end the run.
func TestTerminal(t *testing.T) {
	t.Parallel()
	command := exec.Command("seamark", "local", "-f", examples+"game-server")
	screen := terminal.Start(t, command, 24, 80)
	out := &screen.Output
	out.Await(t, "POD / PROBE")
	out.Await(t, "gameserver-idle=true")
	screen.Press(t, "/")
	screen.Press(t, "server-3\r")
	out.Await(t, "filter: server-3")
	screen.Press(t, "p")
	out.Await(t, "PAUSED")
	screen.Press(t, "q")
	expect.NoError(t, screen.Wait())
	// The table before the pods ended stays on the terminal, without the filter.
	_, last, found := strings.Cut(out.String(), "PAUSED")
	if at := strings.LastIndex(last, "POD / PROBE"); !found || at < 0 {
		t.Fatalf("no table at the end:\n%s", last)
	} else {
		last = last[at:]
	}
	for _, want := range []string{"game-server-0", "game-server-4", "game-server#Idle", "Running"} {
		if !strings.Contains(last, want) {
			t.Errorf("last table does not contain %q:\n%s", want, last)
		}
	}
}

// The second interrupt kills a pod that does not terminate.
func TestSecondInterruptKills(t *testing.T) {
	t.Parallel()
	const manifest = `{apiVersion: v1, kind: Pod, metadata: {name: stubborn}, spec: {terminationGracePeriodSeconds: 600,
		containers: [{name: main, command: [sh, -c, "trap '' TERM; echo trapped; while true; do sleep 600; done"]}]}}`
	command := exec.Command("seamark", "local", "-f", "-", "--logs")
	out := &process.Buffer{}
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(manifest), out, os.Stderr
	expect.NoError(t, command.Start())
	// Only the container prints this. The event "Container started" comes before the shell sets its trap.
	out.Await(t, "trapped")
	for _, want := range []string{"Stopping container main", "signal 9"} {
		expect.NoError(t, command.Process.Signal(syscall.SIGINT))
		out.Await(t, want)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, out)
	}
}
