// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/internal/workloads/schedule"
)

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
