// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/internal/workloads/schedule"
)

// broadcastJobTemplate is the field with the template of BroadcastJobs.
const broadcastJobTemplate = "broadcastJobTemplate"

// broadcastJob checks the template of BroadcastJobs, if there is one, with their rules. It reports whether there is one.
func (c *checker) broadcastJob(o *object) bool {
	template, found, _ := unstructured.NestedMap(o.raw.Object, "spec", "template", broadcastJobTemplate)
	if !found {
		return false
	}
	kind := v1alpha1.GroupVersion().WithKind("BroadcastJob")
	rules, err := c.schemas.Of(kind)
	if err != nil {
		c.add(ruleSchema, o, "", err.Error(), "")
		return true
	}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": template["spec"]}}
	job.SetGroupVersionKind(kind)
	for _, err := range rules.Check(c.ctx, job.Object) {
		if err.Detail != schema.UnknownField { // The decoder finds it.
			c.add(ruleTemplate, o, "spec.template."+broadcastJobTemplate+"."+err.Field, err.ErrorBody(), "")
		}
	}
	return true
}

// jobTemplate returns the path of the template of an AdvancedCronJob, and an empty template.
func (c *checker) jobTemplate(o *object) ([]string, any) {
	if c.broadcastJob(o) {
		return []string{"spec", "template", broadcastJobTemplate}, &v1alpha1.BroadcastJob{}
	}
	return []string{"spec", "template", "jobTemplate"}, &batchv1.JobTemplateSpec{}
}

// cronJob checks an AdvancedCronJob alone, and reads its pod template.
func (c *checker) cronJob(o *object) {
	before := len(c.findings)
	c.checkSchema(o)
	c.workload(o)
	if slices.ContainsFunc(c.findings[before:], func(f Finding) bool { return f.Field == "spec.schedule" || f.Field == "spec.timeZone" }) {
		return
	}
	text, _, _ := unstructured.NestedString(o.raw.Object, "spec", "schedule")
	zone, _, _ := unstructured.NestedString(o.raw.Object, "spec", "timeZone")
	parsed, err := schedule.Parse(text, zone)
	if err != nil {
		c.add(ruleSchedule, o, "spec.schedule", fmt.Sprintf("%q: %v", text, err), "")
		return
	}
	// The findings must not depend on the present time.
	if _, found := parsed.Next(time.Unix(0, 0), time.Unix(0, 0)); !found {
		c.add(ruleSchedule, o, "spec.schedule", fmt.Sprintf("%q: no time within five years matches", text), "")
	}
}
