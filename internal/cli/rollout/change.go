// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

const pauseHelp = `A paused rollout updates no more pods, and a paused job creates none. Pods that fail are still
replaced, and sets are scaled. The command sets the field paused of the object.`

func newPause(o *options) *cobra.Command {
	return o.command("pause", "Pause a rollout or a job", pauseHelp, func(ctx context.Context, t *target) error { return o.setPaused(ctx, t, true) })
}

func newResume(o *options) *cobra.Command {
	return o.command("resume", "Resume a rollout or a job", pauseHelp, func(ctx context.Context, t *target) error { return o.setPaused(ctx, t, false) })
}

// setPaused pauses or resumes an object. An object that is already paused, or not paused, is an error, as for kubectl.
func (o *options) setPaused(ctx context.Context, t *target, paused bool) error {
	if err := t.read(ctx); err != nil {
		return err
	}
	if t.kind.PausedField == "" {
		return exit.Failure(fmt.Errorf("%s: pausing is not supported", t))
	}
	field := strings.Split(t.kind.PausedField, ".")
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", t, err)
	}
	was, _, err := unstructured.NestedBool(content, field...)
	if err != nil {
		return exit.Failure(fmt.Errorf("%s: %w", t, err))
	}
	if was == paused {
		return exit.Failure(fmt.Errorf("%s is %s", t, map[bool]string{true: "already paused", false: "not paused"}[paused]))
	}
	change := map[string]any{}
	if err := unstructured.SetNestedField(change, paused, field...); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	if err := t.patch(ctx, types.MergePatchType, change); err != nil {
		return err
	}
	return printLine(o.Out, "%s %s", t, map[bool]string{true: "paused", false: "resumed"}[paused])
}

// patch patches the object.
func (t *target) patch(ctx context.Context, kind types.PatchType, content any, opts ...client.PatchOption) error {
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the patch of %s: %w", t, err)
	}
	object, ok := t.object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("patch %s: not an object", t)
	}
	if err := t.Client.Patch(ctx, object, client.RawPatch(kind, data), append(opts, client.FieldOwner("seamark-rollout"))...); err != nil {
		return t.failed(err, "patch")
	}
	t.object = object
	return nil
}

// restartedAt is the annotation of a template with which kubectl requests new pods. Seamark never updates it in place.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

const restartHelp = `All pods are recreated, as many at a time as the strategy of the update permits, also those of a
set that updates pods in place. A partition keeps pods as they are.`

func newRestart(o *options) *cobra.Command {
	return o.command("restart", "Replace all pods of a set", restartHelp, o.restart)
}

// restart requests new pods.
func (o *options) restart(ctx context.Context, t *target) error {
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
		return exit.Failure(fmt.Errorf("%s: cannot be restarted while it is paused (run rollout resume first)", t))
	}
	annotations := map[string]any{restartedAt: o.now().Format(time.RFC3339)}
	template := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	err = t.patch(ctx, types.MergePatchType, map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return err
	}
	return printLine(o.Out, "%s restarted", t)
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
		case len(templateChanges(before, to)) == 0:
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
		return fmt.Sprintf("%d pods are updated in place", u.inPlace)
	case u.inPlace == 0 && u.why == "":
		return fmt.Sprintf("%d pods are recreated", u.recreated)
	case u.inPlace == 0:
		return fmt.Sprintf("%d pods are recreated, because %s", u.recreated, u.why)
	}
	return fmt.Sprintf("%d pods are updated in place, and %d are recreated: %s", u.inPlace, u.recreated, u.why)
}

// pods returns the pods of the set.
func (t *target) pods(ctx context.Context, set *setview.View) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Selector)
	if err != nil {
		return nil, exit.Failure(fmt.Errorf("%s: spec.selector: %w", t, err))
	}
	var pods []*corev1.Pod
	err = cluster.Each(ctx, t.Client, &corev1.PodList{}, func(pod *corev1.Pod) {
		if metav1.IsControlledBy(pod, t.object) {
			pods = append(pods, pod)
		}
	}, client.InNamespace(t.namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, t.failed(err, "list")
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return pods, nil
}
