// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

const pauseHelp = `A paused rollout updates no more pods, and a paused job creates none. Pods that fail are still
replaced, and sets are scaled. The command sets the field paused of the object.`

const resumeHelp = `The command sets the field paused of the object to false: the rollout or the job continues.`

func newPause(o *options) *cobra.Command {
	return o.writing("pause", "Pause a rollout or a job", pauseHelp, func(ctx context.Context, t *object) error { return o.setPaused(ctx, t, true) })
}

func newResume(o *options) *cobra.Command {
	return o.writing("resume", "Resume a rollout or a job", resumeHelp, func(ctx context.Context, t *object) error { return o.setPaused(ctx, t, false) })
}

// writing returns a subcommand that writes, with --field-manager. The undo of kubectl writes, too, and does not have the flag.
func (o *options) writing(use, short, help string, run func(ctx context.Context, t *object) error) *cobra.Command {
	command := o.command(use, short, help, run)
	o.AddFieldManagerTo(command)
	return command
}

// pausable returns the kinds whose objects can be paused.
func pausable() (names []string) {
	for _, kind := range kinds.Table() {
		if kind.PausedField != "" {
			names = append(names, kind.Kind)
		}
	}
	return names
}

// setPaused pauses or resumes an object. An object that is already paused, or not paused, is an error, as for kubectl.
func (o *options) setPaused(ctx context.Context, t *object, paused bool) error {
	if err := t.read(ctx); err != nil {
		return err
	}
	if t.Kind.PausedField == "" {
		return exit.Failure(fmt.Errorf("%s: only these kinds can be paused: %s", t, strings.Join(pausable(), ", ")))
	}
	field := strings.Split(t.Kind.PausedField, ".")
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.content)
	if err != nil {
		return fmt.Errorf("encode %s: %w", t, err)
	}
	was, _, err := unstructured.NestedBool(content, field...)
	if err != nil {
		return exit.Failure(fmt.Errorf("%s: %w", t, err))
	}
	state, done := "not paused", "resumed"
	if paused {
		state, done = "already paused", "paused"
	}
	if was == paused {
		return exit.Failure(fmt.Errorf("%s is %s", t, state))
	}
	change := map[string]any{}
	if err := unstructured.SetNestedField(change, paused, field...); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	if err := t.patch(ctx, types.MergePatchType, change); err != nil {
		return err
	}
	return printLine(o.Out, "%s %s", t, done)
}

// patch patches the object.
func (t *object) patch(ctx context.Context, kind types.PatchType, content any, opts ...client.PatchOption) error {
	return t.Patch(ctx, t.content, kind, content, append(opts, client.FieldOwner(t.manager))...)
}

const restartHelp = `All pods are recreated, as many at a time as the strategy of the update permits, also those of a
set that updates pods in place. A partition keeps pods as they are.`

func newRestart(o *options) *cobra.Command {
	return o.writing("restart", "Replace all pods of a set", restartHelp, o.restart)
}

// restart requests new pods.
func (o *options) restart(ctx context.Context, t *object) error {
	if err := t.read(ctx); err != nil {
		return err
	}
	set, err := t.set(o.name)
	switch {
	case err != nil:
		return err
	case set.InPlaceOnly:
		return exit.Failure(fmt.Errorf("%s: cannot be restarted: its strategy is InPlaceOnly, which recreates no pods; delete the pods one after the other, "+
			"or change the strategy", t))
	case set.Progress.Paused:
		return exit.Failure(fmt.Errorf("%s: cannot be restarted while it is paused; run `%s` first", t, t.command("rollout resume")))
	}
	now := o.now().Format(time.RFC3339)
	if set.Template.Annotations[inplace.RestartedAt] == now {
		return exit.Failure(fmt.Errorf("%s: a restart was requested in this second: wait before the next one", t))
	}
	annotations := map[string]any{inplace.RestartedAt: now}
	template := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	err = t.patch(ctx, types.MergePatchType, map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return err
	}
	return printLine(o.Out, "%s restarted%s", t, reach(&set))
}

// reach describes which pods an update of the set does not reach, empty if it reaches all.
func reach(set *setview.View) string {
	kept := set.Progress.Desired - set.Progress.Target
	switch {
	case set.Progress.OnDelete:
		return " (type OnDelete: pods are replaced when they are deleted)"
	case kept > 0:
		return fmt.Sprintf(" (the update strategy keeps %s as they are)", text.Count(kept, "pod"))
	}
	return ""
}

// updates are the pods of a set by how an update reaches them.
type updates struct {
	inPlace, recreated, unchanged int
	// why is why the first pod that is recreated cannot be updated in place.
	why string
}

// updatesTo returns how the pods of a set would be updated from the templates of their revisions to another template.
func updatesTo(set *setview.View, pods []*corev1.Pod, from func(*corev1.Pod) *corev1.PodTemplateSpec, to *corev1.PodTemplateSpec) (u updates) {
	for _, pod := range pods {
		before := from(pod)
		switch {
		case before == nil:
			u.recreated++
		case sameTemplate(before, to):
			u.unchanged++
		case !set.InPlace:
			u.recreated++
		default:
			if _, why := inplace.Between(before, to).Decide(pod); why != "" {
				u.recreated++
				u.why = why
				continue
			}
			u.inPlace++
		}
	}
	return u
}

// String describes the updates.
func (u updates) String() string {
	switch {
	case u.inPlace+u.recreated == 0:
		return "no pod changes"
	case u.recreated == 0:
		return text.Count(u.inPlace, "pod") + " to update in place"
	case u.inPlace == 0 && u.why == "":
		return text.Count(u.recreated, "pod") + " to recreate"
	case u.inPlace == 0:
		return fmt.Sprintf("%s to recreate, because %s", text.Count(u.recreated, "pod"), u.why)
	}
	return fmt.Sprintf("%s to update in place, and %s to recreate, because %s", text.Count(u.inPlace, "pod"), text.Count(u.recreated, "pod"), u.why)
}

// pods returns the pods of the set, sorted by name. The error is that of the request: see FailedTo.
func (t *object) pods(ctx context.Context, set *setview.View) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Selector)
	if err != nil {
		return nil, exit.Failure(fmt.Errorf("%s: spec.selector: %w", t, err))
	}
	all := map[types.NamespacedName]*corev1.Pod{}
	err = cluster.Each(ctx, t.Client, &corev1.PodList{}, func(pod *corev1.Pod) { all[client.ObjectKeyFromObject(pod)] = pod },
		client.InNamespace(t.Namespace), client.MatchingLabelsSelector{Selector: selector})
	return controlled(t.content, all), err
}
