// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// keystroke is the time between two typed characters.
	keystroke = 35 * time.Millisecond
	// read is the time for which a viewer reads an output.
	read = 2 * time.Second
	// clearScreen erases the terminal.
	clearScreen = "\x1b[2J\x1b[H"
)

// session plays the demo as a user types it: with kubectl and its plugin seamark.
type session struct {
	*story
	// manifests is the folder of the example.
	manifests string
}

// play runs all scenes on a cluster without the example's objects, and removes them at the end.
func (s *session) play(ctx context.Context) error {
	if err := s.remove(ctx); err != nil {
		return err
	}
	for _, scene := range []func(context.Context) error{s.create, s.observe, s.explain, s.shrink} {
		fmt.Fprint(s.out, clearScreen)
		if err := scene(ctx); err != nil {
			return err
		}
		if err := pause(ctx, read); err != nil {
			return err
		}
	}
	return s.remove(ctx)
}

// remove deletes the example's objects and waits until they are gone.
func (s *session) remove(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "kubectl", "delete", "--ignore-not-found", "--wait", "-f", s.manifests).CombinedOutput()
	if err != nil {
		return fmt.Errorf("delete the example: %w: %s", err, firstLine(string(out)))
	}
	return nil
}

// create creates the game servers and their marker.
func (s *session) create(ctx context.Context) error {
	s.note("Five game servers, and a marker: an exec probe checks whether a match is running.")
	if err := s.command(ctx, 0, "kubectl apply -f "+s.manifests); err != nil {
		return err
	}
	return s.command(ctx, 0, "kubectl rollout status deployment "+s.example.deployment)
}

// observe shows the states of the probes as they change.
func (s *session) observe(ctx context.Context) error {
	s.note("Seamark runs the probe in every pod. What does it say?")
	return s.command(ctx, 12*time.Second, "kubectl seamark get --watch")
}

// explain shows why a pod is marked.
func (s *session) explain(ctx context.Context) error {
	s.board = newBoard(func(server) {})
	if err := s.board.follow(ctx, s.clientset, s.example); err != nil {
		return err
	}
	live, _ := s.board.now()
	if len(live) == 0 {
		return errors.New("the example has no pods")
	}
	s.note("Each step from the marker to the marks of a pod, with the evidence.")
	return s.command(ctx, 0, "kubectl seamark explain "+sorted(live)[0].name)
}

// shrink scales the servers down by the number of idle ones. It returns an error if a server was
// removed during a match, or if so many matches began or ended between the outputs that a viewer
// could not follow them.
func (s *session) shrink(ctx context.Context) error {
	s.note("The results are labels and deletion costs: a scale-down removes idle servers only.")
	list := "kubectl get pods -L " + idleLabel
	line := list + " && kubectl scale deployment " + s.example.deployment + " --replicas="
	if err := s.typed(ctx, line); err != nil {
		return err
	}
	before, err := s.idleServers(ctx)
	if err != nil {
		return err
	}
	replicas := len(before) - removable(sorted(before))
	fmt.Fprintln(s.out, replicas)
	if err := s.execute(ctx, 0, fmt.Sprintf("%s%d", line, replicas)); err != nil {
		return err
	}
	var gone map[string]server
	err = poll(ctx, func(context.Context) (bool, error) {
		var live map[string]server
		live, gone = s.board.now()
		return len(live) == replicas && len(live)+len(gone) == len(before) && s.removed(ctx, replicas), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the removal of servers: %w", err)
	}
	if !idleBefore(before, gone) {
		return errors.New("a match ended just before the scale-down: record again")
	}
	fmt.Fprintln(s.out)
	if err := s.command(ctx, 0, list); err != nil {
		return err
	}
	live, _ := s.board.now()
	if v := classify(before, sorted(gone)); len(v.begun)+len(v.playing) > 0 || !playing(live) {
		return errors.New("a match began, or all matches ended, during the scale-down: record again")
	}
	s.note("No match was interrupted.")
	return nil
}

// idleServers waits until idle servers can be removed, and returns all servers at that time.
func (s *session) idleServers(ctx context.Context) (before map[string]server, err error) {
	err = poll(ctx, func(context.Context) (bool, error) {
		before, _ = s.board.now()
		return removable(sorted(before)) > 1, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for idle servers among playing ones: %w", err)
	}
	return before, nil
}

// removed reports whether the cluster has only as many pods of the example as replicas: terminating
// pods have ended.
func (s *session) removed(ctx context.Context, replicas int) bool {
	out, err := exec.CommandContext(ctx, "kubectl", "get", "pods", "-o", "name", "-l", s.example.pods.String()).Output()
	return err == nil && len(strings.Fields(string(out))) == replicas
}

// playing reports whether a match is running.
func playing(servers map[string]server) bool {
	for _, v := range servers {
		if v.marked() && !v.isIdle() {
			return true
		}
	}
	return false
}

// idleBefore reports whether all servers in gone were idle before.
func idleBefore(before, gone map[string]server) bool {
	for name := range gone {
		if !before[name].isIdle() {
			return false
		}
	}
	return true
}

// note types a comment.
func (s *session) note(text string) {
	fmt.Fprintf(s.out, "\x1b[90m# %s\x1b[0m\n", text)
}

// prompt precedes each command.
const prompt = "\x1b[1;34m$\x1b[0m "

// command types a command line, and runs it. A command with a limit is interrupted after it.
func (s *session) command(ctx context.Context, limit time.Duration, line string) error {
	if err := s.typed(ctx, line); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	return s.execute(ctx, limit, line)
}

// execute runs a command line in a shell, and leaves time to read its output.
func (s *session) execute(ctx context.Context, limit time.Duration, line string) error {
	within := ctx
	if limit > 0 {
		var stop context.CancelFunc
		within, stop = context.WithTimeout(ctx, limit)
		defer stop()
		// The interrupt is for the program, not for the shell.
		line = "exec " + line
	}
	cmd := exec.CommandContext(within, "sh", "-c", line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, s.out, s.out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil && (limit == 0 || within.Err() == nil) {
		return fmt.Errorf("run %s: %w", line, err)
	}
	return pause(ctx, read)
}

// typed writes the prompt, and a text as a user types it.
func (s *session) typed(ctx context.Context, text string) error {
	fmt.Fprint(s.out, prompt)
	for _, char := range text {
		if err := pause(ctx, keystroke); err != nil {
			return err
		}
		fmt.Fprint(s.out, string(char))
	}
	return pause(ctx, 10*keystroke)
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
