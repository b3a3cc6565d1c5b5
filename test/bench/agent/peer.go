// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/seamark-dev/seamark/test/bench/nodeload"
)

// peer is the process with the container runtime and the servers of the pods.
type peer struct {
	command *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	socket  string
	ready   nodeload.Ready
}

// nodeload returns a command that runs this program as nodeload.
func nodeloadCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	command := exec.CommandContext(ctx, self, append([]string{nodeload.Argument}, args...)...) //nolint:gosec // it is this program
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command, nil
}

// startPeer starts the process. The caller must call stop.
func startPeer(ctx context.Context, socket string, pods int) (*peer, error) {
	command, err := nodeloadCommand(ctx, "serve", "--socket="+socket, fmt.Sprintf("--pods=%d", pods))
	if err != nil {
		return nil, err
	}
	p := &peer{command: command, socket: socket}
	out, err := command.StdoutPipe()
	if err == nil {
		p.in, err = command.StdinPipe()
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the servers of the pods: %w", err)
	}
	p.answers = json.NewDecoder(bufio.NewReader(out))
	if err := p.answers.Decode(&p.ready); err != nil {
		return nil, errors.Join(fmt.Errorf("read the ports of the pods: %w", err), p.stop())
	}
	return p, nil
}

// calls returns how many calls of each method the runtime has received.
func (p *peer) calls() (map[string]int, error) {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return nil, fmt.Errorf("request the number of runtime calls: %w", err)
	}
	calls := map[string]int{}
	if err := p.answers.Decode(&calls); err != nil {
		return nil, fmt.Errorf("read the number of runtime calls: %w", err)
	}
	return calls, nil
}

// floor measures the processor time of one operation of a kind, in a process of its own.
func (p *peer) floor(ctx context.Context, kind string, rate float64, duration time.Duration) (time.Duration, error) {
	target := p.socket
	switch kind {
	case nodeload.KindTCP:
		target = fmt.Sprintf("%s:%d", nodeload.PodIP(0), p.ready.TCP)
	case nodeload.KindHTTP:
		target = fmt.Sprintf("%s:%d", nodeload.PodIP(0), p.ready.HTTP)
	}
	command, err := nodeloadCommand(ctx, "floor", "--kind="+kind, "--target="+target,
		fmt.Sprintf("--rate=%g", rate), "--for="+duration.String())
	if err != nil {
		return 0, err
	}
	return floorOf(command)
}

// floorOf runs a command that measures a floor.
func floorOf(command *exec.Cmd) (time.Duration, error) {
	out, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("measure a floor with %s: %w", command, err)
	}
	var result nodeload.Floor
	if err := json.Unmarshal(out, &result); err != nil {
		return 0, fmt.Errorf("read the floor of %s: %w", command, err)
	}
	return result.CPU / time.Duration(max(result.Done, 1)), nil
}

// stop ends the process.
func (p *peer) stop() error {
	_ = p.in.Close()
	var exit *exec.ExitError
	if err := p.command.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("stop the servers of the pods: %w", err)
	}
	return nil
}
