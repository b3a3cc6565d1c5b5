// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

// changeCause is the annotation in which kubectl records why a revision was made.
const changeCause = "kubernetes.io/change-cause"

const historyHelp = `Each revision is a template of the pods that the set has had. CHANGES is what differs from the
revision before. With --revision, the template of one revision is printed.`

// Revision is an entry of the history of a set.
type Revision struct {
	// Revision is its number, and Name is the name of the ControllerRevision.
	Revision int64  `json:"revision"`
	Name     string `json:"name"`
	// ChangeCause is the value of the annotation kubernetes.io/change-cause, empty if it has none.
	ChangeCause string `json:"changeCause,omitempty"`
	// Changes are the fields of the template that differ from the revision before.
	Changes []string `json:"changes,omitempty"`
	// Template is the template of the pods.
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`

	source *appsv1.ControllerRevision
}

// history are the flags of `seamark rollout history`.
type history struct {
	*options
	revision int64
	output   printing.Report
}

func newHistory(o *options) *cobra.Command {
	h := &history{options: o}
	command := o.command("history", "List the revisions of a set", historyHelp, h.print)
	command.Flags().Int64Var(&h.revision, "revision", 0, "print the template of this revision")
	h.output.AddTo(command)
	return command
}

// print prints the revisions of a set, or one of them.
func (h *history) print(ctx context.Context, t *object) error {
	if err := h.output.Validate(); err != nil {
		return err
	}
	if err := t.read(ctx); err != nil {
		return err
	}
	set, err := t.set(h.name)
	if err != nil {
		return err
	}
	revisions, err := h.revisions(ctx, t, &set)
	if err != nil {
		return err
	}
	if h.revision == 0 {
		return exit.Failure(h.output.Print(h.Out, struct {
			Revisions []Revision `json:"revisions"`
		}{revisions}, func(out io.Writer) error { return printHistory(out, t, revisions) }))
	}
	found, err := find(t, revisions, h.revision)
	if err != nil {
		return err
	}
	return exit.Failure(h.output.Print(h.Out, found, func(out io.Writer) error {
		template, err := printing.YAML(found.Template)
		if err != nil {
			return fmt.Errorf("encode the template: %w", err)
		}
		if _, err := fmt.Fprintf(out, "%s with revision #%d\n%s", t, found.Revision, template); err != nil {
			return fmt.Errorf("print the revision: %w", err)
		}
		return nil
	}))
}

// find returns the revision with the number.
func find(t *object, revisions []Revision, number int64) (*Revision, error) {
	i := slices.IndexFunc(revisions, func(r Revision) bool { return r.Revision == number })
	if i < 0 {
		var numbers []string
		for _, r := range revisions {
			numbers = append(numbers, strconv.FormatInt(r.Revision, 10))
		}
		return nil, exit.Failure(fmt.Errorf("%s: revision %d not found: its revisions are %s", t, number, cmp.Or(strings.Join(numbers, ", "), "none")))
	}
	return &revisions[i], nil
}

// printHistory prints the table of kubectl, with what each revision has changed.
func printHistory(out io.Writer, t *object, revisions []Revision) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s \nREVISION\tCHANGE-CAUSE\tCHANGES\n", t)
	for _, r := range revisions {
		fmt.Fprintf(w, "%d\t%s\t%s\n", r.Revision, text.Line(cmp.Or(r.ChangeCause, "<none>")), cmp.Or(shortened(r.Changes), "<none>"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the history: %w", err)
	}
	if _, err := fmt.Fprintln(out, table.String()); err != nil {
		return fmt.Errorf("print the history: %w", err)
	}
	return nil
}

// maxShown is the number of changes that the table shows of a revision.
const maxShown = 3

func shortened(changes []string) string {
	if len(changes) <= maxShown {
		return text.Line(strings.Join(changes, "; "))
	}
	return fmt.Sprintf("%s; and %d more", text.Line(strings.Join(changes[:maxShown], "; ")), len(changes)-maxShown)
}

// revisions returns the history of a set, the oldest revision first. It warns of revisions that cannot be decoded.
func (o *options) revisions(ctx context.Context, t *object, set *setview.View) ([]Revision, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Selector)
	if err != nil {
		return nil, exit.Failure(fmt.Errorf("%s: spec.selector: %w", t, err))
	}
	var revisions []Revision
	var undecodable []string
	err = cluster.Each(ctx, t.Client, &appsv1.ControllerRevisionList{}, func(rev *appsv1.ControllerRevision) {
		if !metav1.IsControlledBy(rev, t.content) {
			return
		}
		template, err := revision.Template(rev)
		if err != nil {
			undecodable = append(undecodable, err.Error())
			return
		}
		revisions = append(revisions, Revision{
			Revision: rev.Revision, Name: rev.Name, ChangeCause: rev.Annotations[changeCause], Template: template, source: rev,
		})
	}, client.InNamespace(t.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, t.FailedTo("list", "controllerrevisions.apps", err)
	}
	// The controller ignores such revisions, too.
	for _, reason := range undecodable {
		if err := printLine(o.ErrOut, "Ignored a revision: %s", text.Line(reason)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(revisions, func(a, b Revision) int { return cmp.Compare(a.Revision, b.Revision) })
	for i := range revisions {
		if i > 0 {
			revisions[i].Changes = templateChanges(revisions[i-1].Template, revisions[i].Template)
		}
	}
	return revisions, nil
}

// sameTemplate reports whether the templates are those of one revision.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	before, err := revision.Content(a)
	after, errAfter := revision.Content(b)
	return err == nil && errAfter == nil && bytes.Equal(before, after)
}

// templateChanges returns the fields that differ between two templates, with their values if these are short.
func templateChanges(from, to *corev1.PodTemplateSpec) []string {
	before, after := map[string]string{}, map[string]string{}
	flatten("", decoded(from), before)
	flatten("", decoded(to), after)
	var changes []string
	for field, value := range after {
		switch old, had := before[field]; {
		case !had:
			changes = append(changes, fmt.Sprintf("%s: %s added", field, text.Truncate(value, longestValue)))
		case old != value:
			changes = append(changes, fmt.Sprintf("%s: %s → %s", field, text.Truncate(old, longestValue), text.Truncate(value, longestValue)))
		}
	}
	for field := range before {
		if _, has := after[field]; !has {
			changes = append(changes, field+" removed")
		}
	}
	slices.Sort(changes)
	return changes
}

// decoded returns the template as decoded JSON.
func decoded(template *corev1.PodTemplateSpec) (value any) {
	// Templates that were read can be written.
	data, _ := json.Marshal(template)
	_ = json.Unmarshal(data, &value)
	return value
}

// longestValue is the number of bytes of a value that changes show.
const longestValue = 80

// flatten adds the values of all fields by their paths. Elements of lists with names have these in their path.
func flatten(path string, value any, fields map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, each := range v {
			if key == "creationTimestamp" && each == nil {
				continue
			}
			flatten(strings.TrimPrefix(path+"."+key, "."), each, fields)
		}
	case []any:
		for i, each := range v {
			name := strconv.Itoa(i)
			if object, ok := each.(map[string]any); ok {
				if n, ok := object["name"].(string); ok {
					name = n
				}
			}
			flatten(path+"["+name+"]", each, fields)
		}
	case nil:
	default:
		fields[path] = fmt.Sprint(v)
	}
}
