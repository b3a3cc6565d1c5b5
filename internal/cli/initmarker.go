// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/cli/template"
)

// marker returns the marker that the options describe. The error names each invalid flag.
func (o *InitOptions) marker() (draft.Marker, error) {
	var errs flagErrors
	m := draft.Marker{
		Name: o.Name, Namespace: o.Namespace, Container: o.Container, Probe: o.Probe, Condition: o.Condition,
		Succeeded: newMarks(), Failed: newMarks(),
	}
	handler, err := o.handler()
	if err != nil {
		errs = append(errs, err)
	}
	selector, err := draft.Selector(o.Selector)
	errs.note("selector", err)
	if err == nil {
		m.Selector = selector
		m.Name, m.Container = cmp.Or(m.Name, draft.NameOf(selector)), cmp.Or(m.Container, draft.NameOf(selector))
		for _, flag := range []struct{ name, value string }{{"name", m.Name}, {"container", m.Container}} {
			if flag.value == "" {
				errs.note(flag.name, errors.New("required: the selector has no label whose value can be used"))
			}
		}
	}
	o.addMarks(&m, &errs)
	m.Spec = corev1.Probe{ProbeHandler: handler}
	o.addTimes(&m.Spec, &errs)
	return m, errors.Join(errs...)
}

// flagErrors are the errors of the flags, in their order.
type flagErrors []error

// note adds an error of a flag, if there is one.
func (e *flagErrors) note(flag string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("--%s: %w", flag, err))
	}
}

// addMarks adds the labels and annotations, and the name of the probe that they suggest.
func (o *InitOptions) addMarks(m *draft.Marker, errs *flagErrors) {
	for _, label := range o.Labels {
		errs.note("label", addMark(m, label, func(marks draft.Marks) map[string]string { return marks.Labels }))
	}
	for _, annotation := range o.Annotations {
		errs.note("annotation", addMark(m, annotation, func(marks draft.Marks) map[string]string { return marks.Annotations }))
	}
	if len(o.Labels)+len(o.Annotations) == 0 && o.Condition == "" {
		*errs = append(*errs, errors.New("--label, --annotation or --condition is required: a probe must set a mark"))
	}
	for _, mark := range append(append(append([]string{}, o.Labels...), o.Condition), o.Annotations...) {
		key, _, _ := strings.Cut(mark, "=")
		m.Probe = cmp.Or(m.Probe, draft.ProbeOf(key))
	}
}

// addTimes adds the times and thresholds.
func (o *InitOptions) addTimes(probe *corev1.Probe, errs *flagErrors) {
	for _, flag := range []struct {
		name    string
		value   time.Duration
		least   time.Duration
		seconds *int32
	}{
		{"initial-delay", o.InitialDelay, 0, &probe.InitialDelaySeconds},
		{"period", o.Period, time.Second, &probe.PeriodSeconds},
		{"timeout", o.Timeout, time.Second, &probe.TimeoutSeconds},
	} {
		seconds, err := wholeSeconds(flag.value, flag.least)
		errs.note(flag.name, err)
		*flag.seconds = seconds
	}
	for _, flag := range []struct {
		name      string
		value     int32
		threshold *int32
	}{
		{"success-threshold", o.SuccessThreshold, &probe.SuccessThreshold},
		{"failure-threshold", o.FailureThreshold, &probe.FailureThreshold},
	} {
		if flag.value < 1 {
			errs.note(flag.name, fmt.Errorf("%d is invalid: must be 1 or more", flag.value))
		}
		*flag.threshold = flag.value
	}
}

func newMarks() draft.Marks {
	return draft.Marks{Labels: map[string]string{}, Annotations: map[string]string{}}
}

// handler returns the handler of the one flag that is set.
func (o *InitOptions) handler() (corev1.ProbeHandler, error) {
	var handler corev1.ProbeHandler
	var given []string
	for _, flag := range []struct {
		name, value string
		parse       func(string) (corev1.ProbeHandler, error)
	}{{"--exec", o.Exec, draft.Exec}, {"--http", o.HTTP, draft.HTTP}, {"--tcp", o.TCP, draft.TCP}, {"--grpc", o.GRPC, draft.GRPC}} {
		if flag.value == "" {
			continue
		}
		given = append(given, flag.name)
		parsed, err := flag.parse(flag.value)
		if err != nil {
			return handler, fmt.Errorf("%s: %w", flag.name, err)
		}
		handler = parsed
	}
	if len(given) != 1 {
		return handler, fmt.Errorf("exactly one of --exec, --http, --tcp and --grpc is required, not %d", len(given))
	}
	return handler, nil
}

// addMark adds a label or annotation to the states. of returns those of one state.
func addMark(m *draft.Marker, text string, of func(draft.Marks) map[string]string) error {
	key, succeeded, failed, err := draft.Mark(text)
	if err != nil {
		return err
	}
	if _, twice := of(m.Succeeded)[key]; twice {
		return fmt.Errorf("%q occurs twice", key)
	}
	of(m.Succeeded)[key] = succeeded
	if failed != nil {
		of(m.Failed)[key] = *failed
	}
	return nil
}

// wholeSeconds returns a duration in seconds.
func wholeSeconds(d, least time.Duration) (int32, error) {
	if d < least || d%time.Second != 0 || d/time.Second > math.MaxInt32 {
		return 0, fmt.Errorf("%s is invalid: must be whole seconds, at least %s", d, least)
	}
	return int32(d / time.Second), nil
}

// flagOf returns the flag that sets the field of the manifest.
func flagOf(field string) string {
	rest := strings.TrimPrefix(field, "spec.probes[0].")
	for _, f := range []struct{ prefix, flag string }{
		{"metadata.namespace", "--namespace"}, {"metadata", "--name"}, {"spec.selector", "--selector"},
		{"name", "--probe"}, {"containerName", "--container"}, {"podConditionType", "--condition"},
		{"probe.exec", "--exec"}, {"probe.httpGet", "--http"}, {"probe.tcpSocket", "--tcp"}, {"probe.grpc", "--grpc"},
		{"probe.initialDelaySeconds", "--initial-delay"}, {"probe.periodSeconds", "--period"}, {"probe.timeoutSeconds", "--timeout"},
		{"probe.successThreshold", "--success-threshold"}, {"probe.failureThreshold", "--failure-threshold"},
	} {
		if strings.HasPrefix(rest, f.prefix) {
			return f.flag
		}
	}
	if strings.Contains(rest, ".annotations") {
		return "--annotation"
	}
	if strings.Contains(rest, ".labels") {
		return "--label"
	}
	return field
}
