// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// WhiteListKey is the key of the white list in the ConfigMap kruise-configuration.
const WhiteListKey = "SidecarSet_PatchPodMetadata_WhiteList"

// maxRules and maxExpressions bound a white list, which each acceptance evaluates.
const (
	maxRules       = 256
	maxExpressions = 64
)

// WhiteList is which annotations sets may set. The zero value allows none.
type WhiteList struct {
	// DefaultAllowed allows all annotations of the sets for which no rule has an expression.
	DefaultAllowed bool
	rules          []rule
}

// rule is what the sets that the selector matches may set.
type rule struct {
	selector labels.Selector
	allowed  []*regexp.Regexp
}

// ParseWhiteList parses the value of WhiteListKey: JSON as OpenKruise reads it. An empty one has no rules.
// Expressions match whole keys.
func ParseWhiteList(text string, defaultAllowed bool) (WhiteList, error) {
	list := WhiteList{DefaultAllowed: defaultAllowed}
	if text == "" {
		return list, nil
	}
	var stored struct {
		Rules []struct {
			Selector    *metav1.LabelSelector `json:"selector"`
			Expressions []string              `json:"allowedAnnotationKeyExprs"`
		} `json:"rules"`
	}
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return WhiteList{}, fmt.Errorf("parse %s: %w", WhiteListKey, err)
	}
	if len(stored.Rules) > maxRules {
		return WhiteList{}, fmt.Errorf("parse %s: rules: %d rules, at most %d are allowed", WhiteListKey, len(stored.Rules), maxRules)
	}
	for i, r := range stored.Rules {
		path := fmt.Sprintf("parse %s: rules[%d]", WhiteListKey, i)
		parsed := rule{selector: labels.Everything()}
		if r.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(r.Selector)
			if err != nil {
				return WhiteList{}, fmt.Errorf("%s.selector: %w", path, err)
			}
			parsed.selector = selector
		}
		if len(r.Expressions) > maxExpressions {
			return WhiteList{}, fmt.Errorf("%s.allowedAnnotationKeyExprs: %d expressions, at most %d are allowed", path, len(r.Expressions), maxExpressions)
		}
		for j, expression := range r.Expressions {
			compiled, err := regexp.Compile("^(?:" + expression + ")$")
			if err != nil {
				return WhiteList{}, fmt.Errorf("%s.allowedAnnotationKeyExprs[%d]: %w", path, j, err)
			}
			parsed.allowed = append(parsed.allowed, compiled)
		}
		list.rules = append(list.rules, parsed)
	}
	return list, nil
}

// refusal returns why the set may not set the annotation, or nothing if it may.
func (l WhiteList) refusal(set *v1alpha1.SidecarSet, key string) string {
	restricted := false
	for _, rule := range l.rules {
		if !rule.selector.Matches(labels.Set(set.Labels)) {
			continue
		}
		restricted = restricted || len(rule.allowed) > 0
		for _, allowed := range rule.allowed {
			if allowed.MatchString(key) {
				return ""
			}
		}
	}
	if !restricted && l.DefaultAllowed {
		return ""
	}
	refusal := "no expression of " + WhiteListKey + " in the ConfigMap kruise-configuration allows it"
	if part := l.matchesPart(set, key); part != "" {
		refusal += fmt.Sprintf(": %s matches a part of the key only, write %s", part, ".*"+part+".*")
	}
	return refusal
}

// matchesPart returns an expression that matches a part of the key, as OpenKruise would accept it.
func (l WhiteList) matchesPart(set *v1alpha1.SidecarSet, key string) string {
	for _, rule := range l.rules {
		if !rule.selector.Matches(labels.Set(set.Labels)) {
			continue
		}
		for _, allowed := range rule.allowed {
			expression := strings.TrimSuffix(strings.TrimPrefix(allowed.String(), "^(?:"), ")$")
			if part, err := regexp.Compile(expression); err == nil && part.MatchString(key) {
				return expression
			}
		}
	}
	return ""
}
