// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// enoughChanges is how many changes between idle and playing the demo waits for.
	enoughChanges = 5
	// patience is the timeout of each step.
	patience = 2 * time.Minute
	// look is the polling interval.
	look = 100 * time.Millisecond
)

// story runs the steps of the demo.
type story struct {
	out       io.Writer
	clientset kubernetes.Interface
	objects   client.Client
	example   *example
	// watch is the minimum time for which changes of marks are shown.
	watch time.Duration
	// kubectl and kubeconfig are used in the suggested commands at the end.
	kubectl, kubeconfig string

	began time.Time
	board *board
}

// play runs all steps. It returns an error if a step times out, or if a server was removed
// during a match.
func (s *story) play(ctx context.Context) error {
	s.say("Apply the game servers and the PodProbeMarker %s", s.example.marker)
	if err := s.example.apply(ctx, s.objects); err != nil {
		return err
	}
	for _, object := range s.example.objects {
		fmt.Fprintf(s.out, "    %s/%s\n", strings.ToLower(object.GetKind()), object.GetName())
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.show(ctx); err != nil {
		return err
	}
	before, after, err := s.scaleDown(ctx)
	if err != nil {
		return err
	}
	return s.conclude(before, after)
}

// ready waits until every server is ready.
func (s *story) ready(ctx context.Context) error {
	s.say("Wait for the servers to run")
	last := ""
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		d, err := s.clientset.AppsV1().Deployments(s.example.namespace).Get(ctx, s.example.deployment, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("read deployment: %w", err)
		}
		last = fmt.Sprintf("%d of %d ready", d.Status.ReadyReplicas, *d.Spec.Replicas)
		return d.Status.ObservedGeneration == d.Generation &&
			d.Status.ReadyReplicas == *d.Spec.Replicas &&
			d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("wait for servers: %s: %w", dash(last), err)
	}
	fmt.Fprintf(s.out, "    %s\n", last)
	return nil
}

// show prints every change of marks until there are enough.
func (s *story) show(ctx context.Context) error {
	s.say("Watch the marks change. The probe Idle checks each server; its result becomes marks")
	fmt.Fprintf(s.out, "    %-8s %-40s %-8s  %-13s %-16s %-5s %s\n",
		"TIME", "POD", "NOW", idleCondition, strings.ToUpper(idleLabel), "COST", "MESSAGE")
	s.began = time.Now()
	s.board = newBoard(func(v server) {
		fmt.Fprintf(s.out, "    %-8s %-40s %-8s  %-13s %-16s %-5s %s\n",
			fmt.Sprintf("+%.1fs", time.Since(s.began).Seconds()), v.name, v.does(),
			dash(v.condition), dash(v.idle), dash(v.cost), dash(firstLine(v.message)))
	})
	if err := s.board.follow(ctx, s.clientset, s.example); err != nil {
		return err
	}
	err := poll(ctx, func(context.Context) (bool, error) {
		live, _ := s.board.now()
		for _, v := range live {
			if !v.marked() {
				return false, nil
			}
		}
		return time.Since(s.began) >= s.watch && s.board.seen() >= enoughChanges, nil
	})
	if err != nil {
		return fmt.Errorf("wait for marks on every pod and %d changes, got %d: %w", enoughChanges, s.board.seen(), err)
	}
	return nil
}

// scaleDown waits until idle servers can be removed, scales the Deployment down by their number,
// and returns the servers at the time of scaling and those that were removed.
func (s *story) scaleDown(ctx context.Context) (before map[string]server, gone []server, err error) {
	s.say("Wait for idle servers, and scale down")
	remove := 0
	var earlier map[string]server
	err = poll(ctx, func(context.Context) (bool, error) {
		before, earlier = s.board.now()
		remove = removable(sorted(before))
		return remove > 0, nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("wait for idle servers among playing ones: %w", err)
	}
	replicas := len(before) - remove
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err = s.clientset.AppsV1().Deployments(s.example.namespace).
		Patch(ctx, s.example.deployment, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	if err != nil {
		return nil, nil, fmt.Errorf("scale deployment %s: %w", s.example.deployment, err)
	}
	fmt.Fprintf(s.out, "    scaled %s from %d to %d\n", s.example.deployment, len(before), replicas)
	went := map[string]server{}
	err = poll(ctx, func(context.Context) (bool, error) {
		var live map[string]server
		live, went = s.board.now()
		maps.DeleteFunc(went, func(name string, _ server) bool { _, old := earlier[name]; return old })
		return len(live) == replicas && len(went) >= remove, nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("wait for removal of %d servers, got %d: %w", remove, len(went), err)
	}
	s.board.mute()
	return before, sorted(went), nil
}

// conclude prints the result. It returns an error if a server was removed during a match.
func (s *story) conclude(before map[string]server, gone []server) error {
	s.say("The marks at that time, and the removed servers")
	wentAs := map[string]string{}
	for _, v := range gone {
		wentAs[v.name] = "removed, " + v.does()
		if v.isIdle() && !before[v.name].isIdle() {
			wentAs[v.name] = "removed, its match had ended"
		}
	}
	err := writeTable(s.out, sorted(before), func(v server) string {
		if went, isGone := wentAs[v.name]; isGone {
			return went
		}
		return "kept"
	})
	if err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	v := classify(before, gone)
	if len(v.begun) > 0 {
		fmt.Fprintf(s.out, "    A match began on %s between the scaling and the choice of the pods.\n",
			strings.Join(v.begun, ", "))
	}
	if len(v.playing) > 0 {
		return fmt.Errorf("servers were removed during a match: %s", strings.Join(v.playing, ", "))
	}
	if len(v.idle) == 0 {
		return errors.New("no idle server was removed")
	}
	s.say("Result")
	live, _ := s.board.now()
	fmt.Fprintf(s.out, `    An exec probe ran in every server. Its result changed the condition, label and deletion cost of
    a pod %d times. Of %d servers, %d were removed, and no match was interrupted.
`, s.board.seen(), len(before), len(gone))
	s.advise(slices.Sorted(maps.Keys(live))[0])
	return nil
}

// advise prints commands to try next.
func (s *story) advise(pod string) {
	s.say("Next steps")
	in := "-n " + s.example.namespace
	fmt.Fprintf(s.out, "    export KUBECONFIG=%s\n", s.kubeconfig)
	for _, args := range []string{
		fmt.Sprintf("get pods %s -L %s -w", in, idleLabel),
		fmt.Sprintf("describe pod %s %s", in, pod),
		fmt.Sprintf("get podprobemarker %s %s -o yaml", in, s.example.marker),
		"get nodepodprobes,probereports",
		fmt.Sprintf("scale deployment %s %s --replicas=5", in, s.example.deployment),
	} {
		fmt.Fprintf(s.out, "    %s %s\n", s.kubectl, args)
	}
	fmt.Fprintln(s.out, "    make demo-down")
}

// say prints the heading of a step.
func (s *story) say(format string, args ...any) { say(s.out, format, args...) }

func say(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, "\n==> "+format+"\n", args...)
}

// poll waits until done returns true, for at most patience.
func poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, look, patience, true, done)
}
