// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package initialize

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/template"
)

// required is added to the errors if no required flag is given.
const required = "the marker is described by flags, for example: seamark init --exec 'cat /tmp/job' -l app=worker --label busy"

// complete completes the marker, with what the workload says unless it is nil. The error names each invalid flag.
func (o *Options) complete(w *workload) error {
	var errs flagErrors
	handler, err := o.handler()
	if err != nil {
		errs = append(errs, err)
	}
	o.probe.Probe.ProbeHandler = handler
	if w != nil {
		o.use(w, &errs)
	}
	if w == nil || o.Selector != "" {
		o.selectPods(&errs)
	}
	o.addMarks(&errs)
	for _, flag := range []struct {
		name         string
		value, least time.Duration
		seconds      *int32
	}{
		{"initial-delay", o.Delay, 0, &o.probe.Probe.InitialDelaySeconds},
		{"period", o.Period, time.Second, &o.probe.Probe.PeriodSeconds},
		{"timeout", o.Limit, time.Second, &o.probe.Probe.TimeoutSeconds},
	} {
		*flag.seconds = int32(flag.value / time.Second) //nolint:gosec // a value that does not fit is invalid
		if flag.value < flag.least || time.Duration(*flag.seconds)*time.Second != flag.value {
			errs.note(flag.name, fmt.Errorf("%s is invalid: must be whole seconds, at least %s", flag.value, flag.least))
		}
	}
	for _, flag := range []struct {
		name  string
		value int32
	}{{"success-threshold", o.probe.Probe.SuccessThreshold}, {"failure-threshold", o.probe.Probe.FailureThreshold}} {
		if flag.value < 1 {
			errs.note(flag.name, fmt.Errorf("%d is invalid: must be 1 or more", flag.value))
		}
	}
	if o.Exec+o.HTTP+o.TCP+o.GRPC+o.Selector+o.Workload == "" {
		errs = append(errs, errors.New(required))
	}
	return errors.Join(errs...)
}

// selectPods sets the selector, and the names that are not set from it.
func (o *Options) selectPods(errs *flagErrors) {
	selector, err := template.Selector(o.Selector)
	errs.note("selector", err)
	if err != nil {
		return
	}
	o.marker.Spec.Selector = &selector
	for _, flag := range []struct {
		name  string
		value *string
	}{{"name", &o.marker.Name}, {"container", &o.probe.ContainerName}} {
		if *flag.value = cmp.Or(*flag.value, template.NameOf(selector)); *flag.value == "" {
			errs.note(flag.name, errors.New("required: the selector has no label whose value can be used"))
		}
	}
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
func (o *Options) addMarks(errs *flagErrors) {
	succeeded, failed := newPolicy(v1alpha1.ProbeSucceeded), newPolicy(v1alpha1.ProbeFailed)
	for _, label := range o.Labels {
		err := addMark(label, succeeded.Labels, failed.Labels)
		if strings.Count(label, ",") > 1 { // Values of annotations may have commas.
			err = fmt.Errorf("%q is invalid: must have at most two values, for the states Succeeded and Failed", label)
		}
		errs.note("label", err)
	}
	for _, annotation := range o.Annotations {
		errs.note("annotation", addMark(annotation, succeeded.Annotations, failed.Annotations))
	}
	for _, text := range o.LabelsFrom {
		source, err := template.Source(text)
		errs.note("label-from", err)
		succeeded.LabelsFrom = append(succeeded.LabelsFrom, source)
	}
	for _, text := range o.AnnotationsFrom {
		source, err := template.Source(text)
		errs.note("annotation-from", err)
		succeeded.AnnotationsFrom = append(succeeded.AnnotationsFrom, source)
	}
	for _, policy := range []v1alpha1.ProbeMarkerPolicy{succeeded, failed} {
		if len(policy.Labels)+len(policy.Annotations)+len(policy.LabelsFrom)+len(policy.AnnotationsFrom) > 0 {
			o.probe.MarkerPolicy = append(o.probe.MarkerPolicy, policy)
		}
	}
	marks := slices.Concat(o.Labels, o.LabelsFrom, []string{o.probe.PodConditionType}, o.Annotations, o.AnnotationsFrom)
	if strings.Join(marks, "") == "" {
		*errs = append(*errs, errors.New("--label, --annotation, --label-from, --annotation-from or --condition is required: a probe must set a mark"))
	}
	for _, mark := range marks {
		key, _, _ := strings.Cut(mark, "=")
		o.probe.Name = cmp.Or(o.probe.Name, template.ProbeOf(key))
	}
}

func newPolicy(state v1alpha1.ProbeState) v1alpha1.ProbeMarkerPolicy {
	return v1alpha1.ProbeMarkerPolicy{State: state, Labels: map[string]string{}, Annotations: map[string]string{}}
}

// handler returns the handler of the one flag that is set.
func (o *Options) handler() (corev1.ProbeHandler, error) {
	var handler corev1.ProbeHandler
	var given []string
	for _, flag := range []struct {
		name, value string
		parse       func(string) (corev1.ProbeHandler, error)
	}{{"--exec", o.Exec, template.Exec}, {"--http", o.HTTP, template.HTTP}, {"--tcp", o.TCP, template.TCP}, {"--grpc", o.GRPC, template.GRPC}} {
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

// addMark adds the key and its values in the two states.
func addMark(text string, succeeded, failed map[string]string) error {
	key, value, second, err := template.Mark(text)
	if err != nil {
		return err
	}
	if _, twice := succeeded[key]; twice {
		return fmt.Errorf("%q occurs twice", key)
	}
	succeeded[key] = value
	if second != nil {
		failed[key] = *second
	}
	return nil
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
	for field, flag := range map[string]string{".labelsFrom": "--label-from", ".annotationsFrom": "--annotation-from"} {
		if strings.Contains(rest, field) {
			return flag
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
