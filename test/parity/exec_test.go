// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	remote "k8s.io/cri-client/pkg"
	kubeexec "k8s.io/kubernetes/pkg/probe/exec"
	utilexec "k8s.io/utils/exec"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/test/expect"
)

// process is a runtime that runs commands as local processes.
type process struct{}

// ExecSync runs a command as a container runtime does.
func (process) ExecSync(ctx context.Context, _ string, command []string, timeout time.Duration) (stdout, stderr []byte, code int32, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out, errs bytes.Buffer
	run := osexec.CommandContext(ctx, command[0], command[1:]...)
	run.Stdout, run.Stderr = &out, &errs
	err = run.Run()
	var exit *osexec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, nil, 0, ctx.Err()
	case errors.As(err, &exit):
		return out.Bytes(), errs.Bytes(), int32(exit.ExitCode()), nil
	case err != nil:
		return nil, nil, 0, err
	}
	return out.Bytes(), errs.Bytes(), 0, nil
}

// inContainer is the command in the form of the kubelet's prober, which gets both streams in one,
// stdout first, and the errors of the kubelet's runtime client.
type inContainer struct {
	utilexec.Cmd

	command []string
	timeout time.Duration
	out     io.Writer
}

func (c *inContainer) SetStdout(out io.Writer) { c.out = out }
func (c *inContainer) SetStderr(out io.Writer) { c.out = out }
func (c *inContainer) Wait() error             { return nil }

func (c *inContainer) Start() error {
	stdout, stderr, code, err := process{}.ExecSync(context.Background(), "c1", c.command, c.timeout)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: after %s", remote.ErrCommandTimedOut, c.timeout)
	}
	if err != nil {
		return err
	}
	_, _ = c.out.Write(append(stdout, stderr...))
	if code != 0 {
		return utilexec.CodeExitError{Err: errors.New("exited"), Code: int(code)}
	}
	return nil
}

// TestExec runs real commands. The messages are equal if a command writes to exactly one stream.
// docs/judging.md explains the other cases.
func TestExec(t *testing.T) {
	shell := func(script string) []string { return []string{"sh", "-c", script} }
	cases := map[string]struct {
		command  []string
		timeout  time.Duration
		want     conclusion
		messages compareMessages
		said     string
	}{
		"success":                   {shell("echo idle"), ample, success, verbatim, "idle"},
		"success, silent":           {shell("true"), ample, success, verbatim, ""},
		"failure":                   {shell("echo busy; exit 1"), ample, failure, verbatim, "busy"},
		"failure on stderr":         {shell("echo busy >&2; exit 2"), ample, failure, verbatim, "busy"},
		"success on stderr":         {shell("echo idle >&2"), ample, success, verbatim, "idle"},
		"exit 255":                  {shell("echo x; exit 255"), ample, failure, verbatim, "x"},
		"many lines":                {shell("echo a; echo; echo b"), ample, success, verbatim, "a\n\nb"},
		"invalid UTF-8":             {shell(`printf 'a\377b'`), ample, success, verbatim, "a\ufffdb"},
		"100 KiB":                   {shell("yes | head -c 102400"), ample, success, verbatim, "y\ny"},
		"100 KiB and failure":       {shell("yes | head -c 102400; exit 1"), ample, failure, verbatim, "y\ny"},
		"arguments are not a shell": {[]string{"echo", "$HOME", "a  b", ";", "|"}, ample, success, verbatim, "$HOME a  b ; |"},
		"both streams":              {shell("echo out; echo err >&2"), ample, success, verbatim, "out\nerr"},
		"both, no newline":          {shell("printf out; printf err >&2"), ample, success, skipMessages, "out\nerr"},
		"both, long stdout":         {shell("yes | head -c 102400; echo boom >&2; exit 1"), ample, failure, skipMessages, "\nboom"},
		"failure, silent":           {shell("exit 3"), ample, failure, skipMessages, "exited with code 3"},
		"killed":                    {shell("kill -9 $$"), ample, failure, skipMessages, "exited with code"},
		"timeout":                   {[]string{"sleep", "60"}, time.Second, failure, skipMessages, "timed out after 1s"},
		"no such program":           {[]string{"/no/such/program"}, ample, nothing, skipMessages, "no such file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs := verdict{Conclusion: nothing}
			result, message, err := kubeexec.New().Probe(&inContainer{command: tc.command, timeout: tc.timeout})
			if err == nil {
				theirs = kubeletVerdict(t, result, message)
			}
			target := probing.Target{Handler: probing.HandlerExec, Timeout: tc.timeout, Exec: &probing.Exec{Command: tc.command}}
			ours := seamarkVerdict(exec.New(process{}, 1, nil).Probe(t.Context(), target))

			if theirs.Conclusion != tc.want || ours.Conclusion != tc.want {
				t.Errorf("the kubelet returns %+v, Seamark %+v, want %s", theirs, ours, tc.want)
			}
			if tc.messages == verbatim && theirs.Message != ours.Message {
				t.Errorf("the kubelet's message is %q, Seamark's %q", theirs.Message, ours.Message)
			}
			if !strings.Contains(ours.Message, tc.said) {
				t.Errorf("message %q, want it to contain %q", ours.Message, tc.said)
			}
		})
	}
}

// TestTCP connects to ports that accept connections and to ports that do not.
func TestTCP(t *testing.T) {
	serve := func(handle func(net.Conn)) func(*testing.T) *peer {
		return silent(func(t *testing.T) string { return probetest.Serve(t, handle) })
	}
	unread := silent(func(t *testing.T) string { return probetest.Listen(t, "127.0.0.1:0").Addr().String() })
	cases := map[string]struct {
		serve   func(*testing.T) *peer
		timeout time.Duration
		want    conclusion
	}{
		"waits for the client":      {serve(func(c net.Conn) { linger(c, nil, 0) }), ample, success},
		"closes at once":            {short(), ample, success},
		"sends a greeting":          {serve(func(c net.Conn) { _, _ = c.Write([]byte("hello")) }), ample, success},
		"never accepts":             {unread, ample, success},
		"HTTP":                      {wire(say(ok)), ample, success},
		"on IPv6":                   {onIPv6, ample, success},
		"refused":                   {refusing(), ample, failure},
		"refused on IPv6":           {silent(refusing6), ample, failure},
		"host that does not answer": {unanswering(), 300 * time.Millisecond, failure},
		"timeout of 1 ns":           {unanswering(), time.Nanosecond, failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, tcpSocket(), tc.serve, tc.timeout, tc.want, verbatim)
		})
	}
}

// refusing6 returns a bound port of ::1 that nothing listens on, or one of 127.0.0.1 if the machine
// has no IPv6.
func refusing6(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return probetest.Refusing(t)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet6{Addr: netip.IPv6Loopback().As16()}); err != nil {
		return probetest.Refusing(t)
	}
	name, err := syscall.Getsockname(fd)
	expect.NoError(t, err)
	inet, ok := name.(*syscall.SockaddrInet6)
	if !ok {
		t.Fatalf("the socket's name is a %T", name)
	}
	return netip.AddrPortFrom(netip.IPv6Loopback(), uint16(inet.Port)).String()
}
