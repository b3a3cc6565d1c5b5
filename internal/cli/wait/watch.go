// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// watched are the pods that expressions refer to, and their events if an expression refers to them.
type watched struct {
	*live.Signal
	pods   *live.Collection[*corev1.Pod]
	events *live.Collection[*corev1.Event]
}

func (o *options) newWatched() *watched {
	changes := live.NewSignal()
	named := func(pod *corev1.Pod) bool { return len(o.Pods) == 0 || slices.Contains(o.Pods, pod.Name) }
	return &watched{
		Signal: changes, pods: live.NewCollection(changes, named, trim, changes.Touch),
		events: live.NewCollection(changes, live.All, func(e *corev1.Event) *corev1.Event {
			e.ManagedFields = nil
			return e
		}, changes.Touch),
	}
}

// resources returns what is listed and watched.
func (o *options) resources(w *watched, namespace string) []live.Resource {
	var which []client.ListOption
	if o.selector != nil {
		which = append(which, client.MatchingLabelsSelector{Selector: o.selector})
	}
	if len(o.Pods) == 1 {
		which = append(which, client.MatchingFields{metav1.ObjectNameField: o.Pods[0]})
	}
	all := []live.Resource{live.ResourceOf(permission.Pods, namespace, &corev1.PodList{}, w.pods, which...)}
	if slices.ContainsFunc(o.expressions, until.Expression.IsEvent) {
		ofPods := client.MatchingFields{"involvedObject.kind": "Pod"}
		all = append(all, live.ResourceOf(permission.Events, namespace, &corev1.EventList{}, w.events, ofPods))
	}
	return all
}

// wait waits until all expressions are met, and prints the results of evaluate.
func (o *options) wait(
	ctx context.Context, connection cluster.Connection, changes *live.Signal, resources []live.Resource, evaluate func() ([]until.Result, error),
) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	results, err := o.watch(ctx, connection, changes, resources, evaluate)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return exit.Failure(errors.New("interrupted"))
	case err != nil:
		return err
	}
	return o.report(results)
}

// watch evaluates the expressions whenever an object of the resources changes, until all are met, evaluate returns an error, or the
// timeout has passed, and returns the last results. Errors of the first requests end it; later ones are outages, in which requests
// are repeated.
func (o *options) watch(
	ctx context.Context, connection cluster.Connection, changes *live.Signal, resources []live.Resource, evaluate func() ([]until.Result, error),
) (results []until.Result, err error) {
	if o.Timeout > 0 {
		if connection, _, err = connection.Unlimited(); err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	lacks := func(m permission.Missing) error { return exit.NoAccess(fmt.Errorf("%s; %s", m, m.Fix())) }
	notify := func(line string) { fmt.Fprintln(o.ErrOut, line) }
	err = changes.Await(ctx, connection.Client, resources, lacks, notify, func() (bool, error) {
		results, err = evaluate()
		return met(results) || o.Timeout == 0, err
	})
	switch {
	case err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return results, err
	case exit.Code(err) == exit.Access:
		return nil, fmt.Errorf("timed out after %s: %w", o.Timeout, err)
	case results == nil:
		return nil, o.Unanswered()
	}
	return results, nil
}

// trim removes what no expression refers to.
func trim(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, Annotations: pod.Annotations,
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Conditions: pod.Status.Conditions,
			ContainerStatuses: pod.Status.ContainerStatuses, InitContainerStatuses: pod.Status.InitContainerStatuses,
		},
	}
}

// results evaluates the expressions for the pods and their events.
func (o *options) results(w *watched) []until.Result {
	w.Lock()
	pods, events := slices.Collect(maps.Values(w.pods.Items)), slices.Collect(maps.Values(w.events.Items))
	w.Unlock()
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	found := map[types.UID]bool{}
	for _, pod := range pods {
		found[pod.UID] = true
	}
	results := until.NewWatch(o.expressions, pods)
	results.Any = o.Any
	slices.SortFunc(events, func(a, b *corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	for _, event := range events {
		if !found[event.InvolvedObject.UID] {
			continue
		}
		results.Observe(local.Change{
			Kind: local.KindEvent, Namespace: event.InvolvedObject.Namespace, Pod: event.InvolvedObject.Name,
			Event: &local.PodEvent{Type: event.Type, Reason: event.Reason, Message: event.Message},
		})
	}
	all := results.Results()
	for i := range all {
		if !isOfPod(all[i].Expression) {
			all[i].Expression = o.selection() + " " + all[i].Expression
		}
	}
	return all
}

// selection returns the pods that the arguments or the labels select, as users write them.
func (o *options) selection() string {
	if o.All {
		return "pods --all"
	}
	if len(o.Pods) == 0 {
		return "pods -l " + text.Shell([]string{o.Selector.Text})
	}
	return "pod/" + strings.Join(o.Pods, " pod/")
}

// report prints the results. It returns an error if an expression is not met.
func (o *options) report(results []until.Result) error {
	unmet, hint := 0, ""
	for _, result := range results {
		state := "met"
		if !result.Met {
			if unmet++; result.Pods > 1 && !o.Any {
				hint = "; use --any if one pod is enough"
			}
			state = "not met: " + text.Truncate(text.Line(result.Last), maxLast)
		}
		if _, err := fmt.Fprintf(o.Out, "%s: %s\n", result.Expression, state); err != nil {
			return exit.Failure(fmt.Errorf("print the result: %w", err))
		}
	}
	if unmet == 0 {
		return nil
	}
	return exit.Failure(fmt.Errorf("%d of %d expressions not met after %s%s", unmet, len(results), o.Timeout, hint))
}
