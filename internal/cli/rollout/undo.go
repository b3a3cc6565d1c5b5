// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

const undoHelp = `The template of the pods becomes that of an earlier revision, by default of the latest one that
differs from the current template. Nothing else changes: neither replicas nor the partition, and no claims.`

// undo are the flags of `seamark rollout undo`.
type undo struct {
	*options
	toRevision int64
	dryRun     target.DryRun
}

func newUndo(o *options) *cobra.Command {
	u := &undo{options: o}
	u.Check = u.validate
	command := o.command("undo", "Return to an earlier revision", undoHelp, u.to)
	command.Flags().Int64Var(&u.toRevision, "to-revision", 0, "the revision to return to; 0 is the latest one that differs from the current template")
	u.dryRun.AddTo(command)
	return command
}

// validate checks the flags.
func (u *undo) validate() error {
	if u.toRevision < 0 {
		return fmt.Errorf("--to-revision: %d is invalid: must be 0 or more", u.toRevision)
	}
	return u.dryRun.Validate()
}

// to returns a set to a revision.
func (u *undo) to(ctx context.Context, t *object) error {
	if err := t.read(ctx); err != nil {
		return err
	}
	set, err := t.set(u.name)
	switch {
	case err != nil:
		return err
	case set.Progress.Paused:
		return exit.Failure(fmt.Errorf("%s: cannot be rolled back while it is paused; run `%s` first", t, t.command("rollout resume")))
	}
	revisions, err := u.revisions(ctx, t, &set)
	if err != nil {
		return err
	}
	wanted, err := u.wanted(t, &set, revisions)
	if err != nil {
		return err
	}
	if sameTemplate(set.Template, wanted.Template) {
		return printLine(u.Out, "%s skipped rollback (current template already matches revision %d)", t, wanted.Revision)
	}
	if err := u.announce(ctx, t, &set, revisions, wanted); err != nil {
		return err
	}
	return u.write(ctx, t, wanted)
}

// announce prints how the pods will be updated. It returns an error if they cannot be. A user who may not list pods can return to
// a revision, too.
func (u *undo) announce(ctx context.Context, t *object, set *setview.View, revisions []Revision, wanted *Revision) error {
	pods, err := t.pods(ctx, set)
	err = t.FailedTo("list", permission.Pods, err)
	switch {
	case exit.Code(err) == exit.Access && !set.InPlaceOnly:
		return printLine(u.ErrOut, "How the pods will be updated is not known: %v", err)
	case err != nil:
		return err
	}
	how := updatesTo(set, pods, templatesOf(revisions), wanted.Template)
	if set.InPlaceOnly && how.recreated > 0 {
		return exit.Failure(fmt.Errorf("%s: cannot return to revision %d: its strategy is InPlaceOnly, and %s", t, wanted.Revision, how))
	}
	return printLine(u.Out, "%s: revision %d: %s%s", t, wanted.Revision, how, reach(set))
}

// wanted returns the revision to return to.
func (u *undo) wanted(t *object, set *setview.View, revisions []Revision) (*Revision, error) {
	if u.toRevision > 0 {
		return find(t, revisions, u.toRevision)
	}
	// The last one is that of the current template, or, if the controller has not handled it yet, the one before it.
	last := len(revisions) - 1
	if last >= 0 && sameTemplate(revisions[last].Template, set.Template) {
		last--
	}
	if last < 0 {
		return nil, exit.Failure(fmt.Errorf("%s: no rollout history found: it has had one template only", t))
	}
	return &revisions[last], nil
}

// templatesOf returns the template of the revision of a pod, nil if it is not known.
func templatesOf(revisions []Revision) func(*corev1.Pod) *corev1.PodTemplateSpec {
	var all []*appsv1.ControllerRevision
	templates := map[string]*corev1.PodTemplateSpec{}
	for _, r := range revisions {
		all = append(all, r.source)
		templates[r.Name] = r.Template
	}
	return func(pod *corev1.Pod) *corev1.PodTemplateSpec {
		if of := revision.Of(pod, all); of != nil {
			return templates[of.Name]
		}
		return nil
	}
}

// write replaces the template, unless the specification has changed since it was read.
func (u *undo) write(ctx context.Context, t *object, wanted *Revision) error {
	template, err := rawTemplate(wanted.source)
	if err != nil {
		return exit.Failure(err)
	}
	if !u.dryRun.Client() {
		err = t.patch(ctx, types.JSONPatchType, []map[string]any{
			{"op": "test", "path": "/metadata/uid", "value": t.content.GetUID()},
			{"op": "test", "path": "/metadata/generation", "value": t.content.GetGeneration()},
			{"op": "replace", "path": "/spec/template", "value": template},
		}, u.dryRun.Options()...)
	}
	if err != nil {
		return err
	}
	return printLine(u.Out, "%s rolled back%s", t, u.dryRun.Suffix())
}

// rawTemplate returns the template of a revision with all its fields, also those that this program does not know.
func rawTemplate(rev *appsv1.ControllerRevision) (map[string]any, error) {
	var content struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(rev.Data.Raw, &content); err != nil {
		return nil, fmt.Errorf("decode ControllerRevision %s/%s: %w", rev.Namespace, rev.Name, err)
	}
	delete(content.Spec.Template, "$patch")
	return content.Spec.Template, nil
}
