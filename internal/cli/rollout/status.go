// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

const statusHelp = `By default, the command waits until the rollout is complete: all pods that the strategy updates
are updated, and all pods are available. A partition that is reached is complete.

The command lists the object by its name, or gets it if you may not list it. With -l, the objects are
followed one after the other, and listed again after a rollout was waited for. Unless the rollout is
complete, the command also lists the pods, if you may, to say what they wait for, and watches the
object and the pods.

Exit codes are those of 'kubectl rollout status': 0 if the rollout is complete, or with
--watch=false, and otherwise 1: progressDeadlineSeconds have passed, --timeout has, or the object is
deleted.`

// status are the flags of `seamark rollout status`.
type status struct {
	*options
	watch    bool
	revision int64
	// waited means that a rollout was not complete at once, so that what was listed to find the others is old.
	waited bool
}

func newStatus(o *options) *cobra.Command {
	s := &status{options: o}
	s.Check = s.validate
	command := o.command("status", "Show the progress of a rollout until it is complete", statusHelp, s.follow)
	flags := command.Flags()
	flags.BoolVarP(&s.watch, "watch", "w", true, "wait until the rollout is complete")
	flags.DurationVar(&s.Timeout, "timeout", 0, "maximum time to wait for each object; 0 has no limit")
	flags.Int64Var(&s.revision, "revision", 0, "fail if this is not the revision that pods are updated to; 0 is any")
	return command
}

// validate checks the flags.
func (s *status) validate() error {
	if s.Timeout < 0 {
		return fmt.Errorf("--timeout: %s is invalid: must be 0 or more", s.Timeout)
	}
	if s.revision < 0 {
		return fmt.Errorf("--revision: %d is invalid: must be 0 or more", s.revision)
	}
	return nil
}

// follow prints the state of the rollout after each change, until it is complete.
func (s *status) follow(ctx context.Context, t *object) error {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	if s.waited {
		t.Listed = nil // It has been listed before another rollout was waited for.
	}
	list, err := t.list(ctx)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", t, s.Unanswered())
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return exit.Failure(fmt.Errorf("%s: interrupted", t))
	case err != nil:
		return err
	}
	first, err := t.set(s.name)
	if err != nil {
		return err
	}
	if first.Progress.OnDelete {
		return exit.Failure(fmt.Errorf("%s: rollout status is not available for the type OnDelete: its pods are updated when they are deleted", t))
	}
	if s.revision > 0 {
		revisions, err := s.revisions(ctx, t, &first)
		if err != nil {
			return err
		}
		pinned, err := find(t, revisions, s.revision)
		if err != nil {
			return err
		}
		t.pinned = pinned.Name
	}
	lines := &lines{out: s.Out, width: printing.Width(s.Out)}
	defer lines.end()
	complete := first.State().Phase == rollout.Complete && t.content.GetDeletionTimestamp() == nil
	if !s.watch || complete {
		return s.once(ctx, t, &first, lines)
	}
	s.waited = true
	return s.await(ctx, t, list, &first, lines)
}

// once prints the state of the rollout. The pods are read if it is not complete.
func (s *status) once(ctx context.Context, t *object, set *setview.View, lines *lines) error {
	var pods []*corev1.Pod
	if set.State().Phase != rollout.Complete {
		var err error
		// The counts of the set are enough.
		if pods, err = t.pods(ctx, set); err != nil && !apierrors.IsForbidden(err) {
			return t.FailedTo("list", permission.Pods, err)
		}
	}
	_, err := s.report(t, lines, pods)
	return err
}

// await prints the state of the rollout after each change of the set, which was listed, and of the pods that it selects, until it is
// complete.
func (s *status) await(ctx context.Context, t *object, list client.ObjectList, set *setview.View, lines *lines) error {
	connection, _, err := t.Unlimited()
	if err != nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Selector)
	if err != nil {
		return exit.Failure(fmt.Errorf("%s: spec.selector: %w", t, err))
	}
	signal := live.NewSignal()
	sets := live.NewCollection(signal, live.All, func(set client.Object) client.Object { return set }, signal.Touch)
	pods := live.NewCollection(signal, live.All, func(pod *corev1.Pod) *corev1.Pod {
		pod.ManagedFields = nil
		return pod
	}, signal.Touch)
	var own []*corev1.Pod
	err = signal.Await(ctx, connection.Client, []live.Resource{
		live.ResourceOf(permission.Resource(t.Kind.Definition()), t.Namespace, t.Kind.NewList(), sets, t.byName()).From(list),
		live.ResourceOf(permission.Pods, t.Namespace, &corev1.PodList{}, pods, client.MatchingLabelsSelector{Selector: selector}),
	}, func(m permission.Missing) error {
		if m.Resource == permission.Pods {
			return nil // The counts of the set are enough.
		}
		return exit.NoAccess(fmt.Errorf("%s; %s", m, m.Fix()))
	}, func(line string) {
		lines.end()
		fmt.Fprintln(s.ErrOut, line)
	}, func() (bool, error) {
		signal.Lock()
		current, found := sets.Items[t.Key()]
		own = controlled(t.content, pods.Items)
		signal.Unlock()
		if !found || current.GetUID() != t.content.GetUID() {
			return true, exit.Failure(fmt.Errorf("%s has been deleted", t))
		}
		t.content = current
		return s.report(t, lines, own)
	})
	if err != nil {
		return s.interrupted(ctx, t, own, err)
	}
	return nil
}

// controlled returns the pods that the set controls, sorted by name.
func controlled(set client.Object, all map[types.NamespacedName]*corev1.Pod) (pods []*corev1.Pod) {
	for _, pod := range all {
		if metav1.IsControlledBy(pod, set) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// report prints the state of the rollout, and returns whether nothing more is to be waited for.
func (s *status) report(t *object, lines *lines, pods []*corev1.Pod) (done bool, err error) {
	set, err := t.set(s.name)
	if err != nil {
		return true, err
	}
	if t.content.GetDeletionTimestamp() != nil {
		return false, lines.wait(&set.Progress, fmt.Sprintf("Waiting for %s to be deleted...", t.short()))
	}
	state := set.State()
	if s.revision > 0 && state.Phase != rollout.NotObserved && revision.Hash(set.Progress.Revision) != revision.Hash(t.pinned) {
		return true, exit.Failure(fmt.Errorf("%s: the pods are not updated to revision %d, but to %s", t, s.revision, set.Progress.Revision))
	}
	switch state.Phase {
	case rollout.NotObserved:
		return false, lines.wait(&set.Progress, fmt.Sprintf("Waiting for %s spec update to be observed...", t.short()))
	case rollout.Complete:
		suffix := ""
		if set.Progress.Updated < set.Progress.Desired {
			suffix = ": " + state.Message
		}
		return true, lines.print(fmt.Sprintf("%s successfully rolled out%s", t.short(), suffix))
	case rollout.Stalled:
		return true, exit.Failure(fmt.Errorf("%s exceeded its progress deadline: %s", t.short(), text.Line(state.Message)+first(s.waits(&set, pods))))
	}
	rest := first(s.waits(&set, pods))
	switch {
	case state.Phase == rollout.Paused:
		rest = "; run `" + t.command("rollout resume") + "`"
	case set.Progress.Guarded != "":
		rest += "; to see how they get free, run `" + t.command("explain") + "`"
	}
	return false, lines.wait(&set.Progress, fmt.Sprintf("Waiting for %s rollout to finish: %s%s...", t.short(), state.Message, rest))
}

// interrupted returns the error of a command that ends before the rollout is complete: because of the context, or of err.
func (s *status) interrupted(ctx context.Context, t *object, pods []*corev1.Pod, err error) error {
	set, _ := setview.Of(t.content)
	cause := text.Line(set.State().Message) + first(s.waits(&set, pods))
	switch {
	case exit.Code(err) == exit.Access && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: timed out after %s: %w", t, s.Timeout, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return exit.Failure(fmt.Errorf("%s: timed out after %s: %s", t, s.Timeout, cause))
	case errors.Is(ctx.Err(), context.Canceled):
		return exit.Failure(fmt.Errorf("%s: interrupted: %s", t, cause))
	}
	return err
}

// waits returns what the pods wait for, first those that a user has to do something about.
func (s *status) waits(set *setview.View, pods []*corev1.Pod) (waits []string) {
	rules := set.Rules
	rules.Now = s.now()
	var wrong, others []string
	for _, pod := range pods {
		if wait := rollout.WaitOf(pod, rules); wait.Why != "" {
			line := "pod " + pod.Name + " " + wait.Why
			if wait.Wrong {
				wrong = append(wrong, line)
			} else {
				others = append(others, line)
			}
		}
	}
	return append(wrong, others...)
}

// first returns the first text with the number of the others, as the end of a sentence.
func first(all []string) string {
	switch len(all) {
	case 0:
		return ""
	case 1:
		return "; " + text.Line(all[0])
	}
	return fmt.Sprintf("; %s, and %s", text.Line(all[0]), text.Count(len(all)-1, "more pod"))
}

// printLine prints a line.
func printLine(out io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(out, format+"\n", args...); err != nil {
		return exit.Failure(fmt.Errorf("print the result: %w", err))
	}
	return nil
}
