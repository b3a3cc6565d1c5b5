// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"k8s.io/apimachinery/pkg/util/wait"
)

// buffer is a buffer for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the content without escape sequences.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return ansi.Strip(b.text.String())
}

func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return strings.Contains(b.String(), text), nil })
	if err != nil {
		t.Fatalf("wait for %q: %v\n%s", text, err, b)
	}
}

// On a terminal the output is a table. Keys filter it, pause it and end the run.
func TestTerminal(t *testing.T) {
	t.Parallel()
	command := exec.Command("seamark", "local", "-f", examples+"game-server")
	command.Env = append(os.Environ(), "TERM=xterm-256color")
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	out := &buffer{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		// Reading from a closed terminal is an error.
		_, _ = io.Copy(out, terminal)
	}()
	press := func(keys string) {
		if _, err := io.WriteString(terminal, keys); err != nil {
			t.Fatal(err)
		}
	}
	out.await(t, "POD / PROBE")
	out.await(t, "gameserver-idle=true")
	press("/")
	press("server-3\r")
	out.await(t, "filter: server-3")
	press("p")
	out.await(t, "PAUSED")
	press("q")
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	<-read
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
		containers: [{name: main, command: [sh, -c, "trap '' TERM; echo started; while true; do sleep 600; done"]}]}}`
	command := exec.Command("seamark", "local", "-f", "-", "--logs")
	out := &buffer{}
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(manifest), out, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	out.await(t, "started")
	for _, want := range []string{"Stopping container main", "signal 9"} {
		if err := command.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		out.await(t, want)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, out)
	}
}
