// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/seamark-dev/seamark/internal/manifest/apikind"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

const kindMarker = apikind.Marker

// hook is what is checked of the objects of a kind besides their schema and pods. Fields may be nil.
type hook struct {
	// check checks an object alone, in place of the checks of all kinds.
	check func(c *checker, o *object)
	// template returns the path of the template of an object, and an empty one. The default is that of pods at spec.template.
	template func(c *checker, o *object) (path []string, template any)
}

// hooks returns the hooks by kind.
func hooks() map[string]hook {
	return map[string]hook{
		"SidecarSet":      {check: (*checker).sidecarSet},
		"AdvancedCronJob": {check: (*checker).cronJob, template: (*checker).jobTemplate},
	}
}

// hookOf returns the hook of an object, which is empty if its kind has none.
func hookOf(o *object) hook {
	if kind := kinds.ByGroupKind(o.raw.GroupVersionKind().GroupKind()); kind != nil {
		return hooks()[kind.Kind]
	}
	return hook{}
}

// checkKind finds a kind or a version that no API server with Seamark has.
func (c *checker) checkKind(o *object) {
	if problem := apikind.Check(o.raw.GroupVersionKind()); problem != nil {
		rule := map[apikind.Reason]Rule{apikind.Unknown: ruleKind, apikind.Version: ruleAPIVersion, apikind.NotServed: ruleNotServed}[problem.Reason]
		c.add(rule, o, problem.Field, problem.Message, problem.Fix)
	}
}
