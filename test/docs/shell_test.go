// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// repeatFor is how long a read-only command is repeated.
const repeatFor = time.Minute

// driver is the script of a document's shell. It reads commands from descriptor 3 and writes
// their exit codes to descriptor 4.
const driver = `set -uo pipefail
while IFS= read -r -u 3 request; do eval "$request"; done`

// shell is the bash process that runs the commands of a document.
type shell struct {
	process  *exec.Cmd
	requests *os.File
	answers  chan string
	exited   chan struct{}
	dir      string
	count    int
}

// newShell starts a shell that keeps its files in dir.
func newShell(dir string, env []string) (*shell, error) {
	requestsIn, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, answersIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &shell{requests: requests, answers: make(chan string), exited: make(chan struct{}), dir: dir}
	s.process = exec.Command("bash", "--noprofile", "--norc", "-c", driver)
	s.process.Dir, s.process.Env = root, env
	s.process.ExtraFiles = []*os.File{requestsIn, answersIn}
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	requestsIn.Close()
	answersIn.Close()
	go func() {
		// run returns the exit code of the shell as that of the command that ended it.
		_ = s.process.Wait()
		close(s.exited)
	}()
	go func() {
		defer answers.Close()
		for lines := bufio.NewScanner(answers); lines.Scan(); {
			select {
			case s.answers <- lines.Text():
			case <-s.exited:
			}
		}
	}()
	return s, nil
}

// close ends the shell and the processes that it started.
func (s *shell) close() {
	s.requests.Close()
	// They may have exited already.
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(5 * time.Second):
	}
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
	<-s.exited
}

// run runs one command and returns its output and exit code. If strict is set, the shell
// exits when a part of the command fails.
func (s *shell) run(ctx context.Context, source string, strict bool) (string, int, error) {
	s.count++
	script := filepath.Join(s.dir, "command-"+strconv.Itoa(s.count))
	output := filepath.Join(s.dir, "output-"+strconv.Itoa(s.count))
	if err := os.WriteFile(script, []byte(source+"\n"), 0o600); err != nil {
		return "", 0, err
	}
	option := "+e"
	if strict {
		option = "-e"
	}
	_, err := fmt.Fprintf(s.requests, "set %s; . %s 3<&- 4>&- </dev/null >%s 2>&1; echo $? >&4\n", option, script, output)
	if err != nil {
		return "", 0, fmt.Errorf("send command to bash: %w", err)
	}
	code := 0
	select {
	case answer := <-s.answers:
		if code, err = strconv.Atoi(answer); err != nil {
			return "", 0, err
		}
	case <-s.exited:
		code = max(s.process.ProcessState.ExitCode(), 1)
	case <-ctx.Done():
		err = ctx.Err()
	}
	printed, readErr := os.ReadFile(output)
	return string(printed), code, errors.Join(err, readErr)
}

// perform runs a command of a document and returns an error if its result differs from what
// the document shows.
func (s *shell) perform(ctx context.Context, c command, fails bool) error {
	if !c.readOnly() || fails {
		return s.once(ctx, c, fails, !fails)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, repeatFor, true, func(ctx context.Context) (bool, error) {
		now := s.once(ctx, c, false, false)
		// An attempt that the deadline cancels says less than the attempt before it.
		if last == nil || ctx.Err() == nil {
			last = now
		}
		return now == nil, nil
	})
	if err != nil {
		return fmt.Errorf("repeated for %s: %w", repeatFor, last)
	}
	return nil
}

func (s *shell) once(ctx context.Context, c command, fails, strict bool) error {
	output, code, err := s.run(ctx, c.source, strict)
	switch {
	case err != nil:
	case fails && code == 0:
		err = errors.New("exit code 0, want a failure")
	case !fails && code != 0:
		err = fmt.Errorf("exit code %d", code)
	default:
		err = matches(c.output, output)
	}
	if err != nil {
		return fmt.Errorf("%w\noutput:\n%s", err, output)
	}
	return nil
}

// interrupted runs a command until its output matches the document, or until it prints
// anything if the document shows no output, and then sends SIGINT.
func (s *shell) interrupted(ctx context.Context, c command) error {
	output, err := os.Create(filepath.Join(s.dir, "interrupted"))
	if err != nil {
		return err
	}
	defer output.Close()
	process := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", c.source)
	process.Dir, process.Env, process.Stdout, process.Stderr = root, s.process.Env, output, output
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Start(); err != nil {
		return err
	}
	group := -process.Process.Pid
	defer syscall.Kill(group, syscall.SIGKILL) //nolint:errcheck // it may have exited
	var printed string
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		read, err := os.ReadFile(output.Name())
		printed = string(read)
		if len(c.output) == 0 {
			return strings.TrimSpace(printed) != "", err
		}
		return matches(append(c.output[:len(c.output):len(c.output)], "..."), printed) == nil, err
	})
	if err != nil {
		return fmt.Errorf("did not print what the document shows: %w\noutput:\n%s", err, printed)
	}
	if err := syscall.Kill(group, syscall.SIGINT); err != nil {
		return fmt.Errorf("exited before Ctrl-C: %w", err)
	}
	var exit *exec.ExitError
	if err := process.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
