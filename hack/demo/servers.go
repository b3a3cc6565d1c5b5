// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	serversFolder   = "examples/game-server"
	serversSelector = "app=game-server"
	// idleLabel is the label that the example's marker sets: true or false.
	idleLabel = "gameserver-idle"
	// size is the number of servers of the example, and excess how many of them are removed.
	size, excess = 5, 2
	// patience is the timeout of a step.
	patience = 2 * time.Minute
)

// servers is the demo of the game servers.
type servers struct {
	*shell
	pods typedcore.PodInterface
}

// play runs all scenes on a cluster from which it removes the example first.
func (s *servers) play(ctx context.Context) error {
	if err := s.run(ctx, "kubectl delete --ignore-not-found --cascade=foreground -f "+serversFolder, io.Discard); err != nil {
		return err
	}
	s.scene("Five game servers, and a marker: an exec probe checks whether a match is running.")
	if err := s.command(ctx, "kubectl apply -f "+serversFolder); err != nil {
		return err
	}
	if err := s.command(ctx, "kubectl rollout status deployment game-server"); err != nil {
		return err
	}
	s.scene("Seamark runs the probe in every pod. What does it say?")
	if err := s.command(ctx, "kubectl seamark get --watch --request-timeout=12s"); err != nil {
		return err
	}
	s.scene("Each step from the marker to the marks of a pod, with the evidence.")
	pods, err := s.pods.List(ctx, metav1.ListOptions{LabelSelector: serversSelector, Limit: 1})
	if err != nil {
		return fmt.Errorf("list the game servers: %w", err)
	}
	if len(pods.Items) == 0 {
		return errors.New("list the game servers: there is none")
	}
	if err := s.command(ctx, "kubectl seamark explain "+pods.Items[0].Name); err != nil {
		return err
	}
	s.scene("The results are labels and deletion costs: a scale-down removes idle servers only.")
	return s.shrink(ctx)
}

// shrink removes two servers when three of five are idle. It returns an error if a match was
// interrupted.
func (s *servers) shrink(ctx context.Context) error {
	const list = "kubectl get pods -L " + idleLabel
	line := fmt.Sprintf("%s && kubectl scale deployment game-server --replicas=%d", list, size-excess)
	if err := s.show(ctx, line); err != nil {
		return err
	}
	f := &fleet{live: map[string]*corev1.Pod{}, gone: map[string]*corev1.Pod{}}
	var before map[string]*corev1.Pod
	within, stop := context.WithTimeout(ctx, patience)
	defer stop()
	// A watch without a resource version begins with the pods that exist.
	watcher, err := s.pods.Watch(within, metav1.ListOptions{LabelSelector: serversSelector})
	if err != nil {
		return fmt.Errorf("watch the game servers: %w", err)
	}
	_, err = watchtools.UntilWithoutRetry(within, watcher,
		func(event watch.Event) (bool, error) {
			f.see(event)
			if !scalable(f.live) {
				return false, nil
			}
			before = maps.Clone(f.live)
			fmt.Fprintln(s.out)
			return true, s.execute(ctx, line)
		},
		func(event watch.Event) (bool, error) {
			f.see(event)
			return len(f.live) == size-excess && len(f.gone) == excess && f.ended == excess, nil
		})
	if err != nil {
		return fmt.Errorf("scale down: %d servers are left, %d removed, %d ended: %w", len(f.live), len(f.gone), f.ended, err)
	}
	fmt.Fprintln(s.out)
	if err := s.command(ctx, list); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.gone)) {
		reason, interrupted := verdict(isIdle(before[name]), isIdle(f.gone[name]))
		if interrupted {
			return fmt.Errorf("server %s was removed: %s", name, reason)
		}
		s.note("%s was removed: %s", name, reason)
	}
	s.note("Of %d servers, %d were removed, and no match was interrupted.", size, excess)
	return nil
}

// fleet is what a watch has shown of the servers.
type fleet struct {
	// live holds the pods that are not terminating, and gone each other one as it was when its
	// termination began.
	live, gone map[string]*corev1.Pod
	// ended is the number of pods in gone that no longer exist.
	ended int
}

// see handles an event. Pods that were already terminating before are ignored.
func (f *fleet) see(event watch.Event) {
	pod, isPod := event.Object.(*corev1.Pod)
	if !isPod {
		return
	}
	if event.Type != watch.Deleted && pod.DeletionTimestamp == nil {
		f.live[pod.Name] = pod
		return
	}
	if f.live[pod.Name] != nil {
		delete(f.live, pod.Name)
		f.gone[pod.Name] = pod
	}
	if event.Type == watch.Deleted && f.gone[pod.Name] != nil {
		f.ended++
	}
}

// scalable reports whether this is the time to remove the excess servers. One more is idle, because
// a match can start between reading the marks and the choice of the pods. All are ready, because the
// ReplicaSet controller orders only those by deletion cost.
func scalable(pods map[string]*corev1.Pod) bool {
	idle := 0
	for _, pod := range pods {
		if !isReady(pod) || pod.Labels[idleLabel] == "" {
			return false
		}
		if isIdle(pod) {
			idle++
		}
	}
	return len(pods) == size && idle == excess+1
}

func isIdle(pod *corev1.Pod) bool { return pod.Labels[idleLabel] == "true" }

// verdict describes the removal of a server by whether it was idle when scaling began, and when it
// was removed. It reports whether the scale-down interrupted a match.
func verdict(before, removed bool) (reason string, interrupted bool) {
	switch {
	case before && removed:
		return "idle", false
	case removed:
		return "its match had just ended", false
	case before:
		return "a match had begun since the scale-down", false
	default:
		return "during a match", true
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

const (
	// keystroke is the time between two typed characters.
	keystroke = 35 * time.Millisecond
	// reading is the time for which a viewer reads an output.
	reading = 2 * time.Second
	// clearScreen erases the terminal.
	clearScreen = "\x1b[2J\x1b[H"
)

// shell shows commands with their output, as in the terminal of a user.
type shell struct {
	out io.Writer
	// typing reports whether commands are typed at the speed of a user, in color.
	typing bool
	run    func(ctx context.Context, line string, out io.Writer) error
}

// system runs a command line in the shell of the system. Errors of the commands go to standard error.
func system(ctx context.Context, line string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", line, err)
	}
	return nil
}

// note shows a comment.
func (s *shell) note(format string, args ...any) {
	fmt.Fprintln(s.out, s.color("90", fmt.Sprintf("# "+format, args...)))
}

// color colors a text in a recording.
func (s *shell) color(code, text string) string {
	if !s.typing {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// scene begins an empty screen with a comment, in a recording.
func (s *shell) scene(text string) {
	if s.typing {
		fmt.Fprint(s.out, clearScreen)
	} else {
		fmt.Fprintln(s.out)
	}
	s.note("%s", text)
}

// command shows a command line and runs it.
func (s *shell) command(ctx context.Context, line string) error {
	if err := s.show(ctx, line); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	return s.execute(ctx, line)
}

func (s *shell) show(ctx context.Context, text string) error {
	fmt.Fprint(s.out, s.color("1;34", "$"), " ")
	for _, char := range text {
		if err := s.pause(ctx, keystroke); err != nil {
			return err
		}
		fmt.Fprint(s.out, string(char))
	}
	return s.pause(ctx, 10*keystroke)
}

// execute runs a command line, and leaves time to read its output.
func (s *shell) execute(ctx context.Context, line string) error {
	if err := s.run(ctx, line, s.out); err != nil {
		return err
	}
	return s.pause(ctx, reading)
}

// pause waits in a recording, or until ctx ends.
func (s *shell) pause(ctx context.Context, d time.Duration) error {
	if !s.typing {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
