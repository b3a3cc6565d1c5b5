// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/component-base/featuregate"
)

// The feature gates, by OpenKruise's names.
const (
	// PodProbeMarkerGate is whether the manager works at all. Default true.
	PodProbeMarkerGate = "PodProbeMarkerGate"
	// ServerlessGate is whether pods of virtual kubelets are served. Default false.
	ServerlessGate = "EnablePodProbeMarkerOnServerless"
)

// newGates returns the gates with their defaults. Beside those of Seamark it has AllAlpha
// and AllBeta, which switch those that are not named themselves.
func newGates() featuregate.MutableFeatureGate {
	gates := featuregate.NewFeatureGate()
	// Adding to gates that nobody has used yet can't fail.
	_ = gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		PodProbeMarkerGate: {Default: true, PreRelease: featuregate.Beta},
		ServerlessGate:     {Default: false, PreRelease: featuregate.Alpha},
	})
	return gates
}

// knownGates returns the names of all gates, in order.
func knownGates() []string {
	var names []string
	for name := range newGates().GetAll() {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// effective returns all gates of Seamark as given sets them. Unknown ones are left alone:
// validation names them.
func effective(given map[string]bool) map[string]bool {
	gates := newGates()
	known := maps.Clone(given)
	maps.DeleteFunc(known, func(name string, _ bool) bool { return !slices.Contains(knownGates(), name) })
	// Known gates are not locked, so they can be set.
	_ = gates.SetFromMap(known)
	all := maps.Clone(given)
	if all == nil {
		all = map[string]bool{}
	}
	for _, name := range []featuregate.Feature{PodProbeMarkerGate, ServerlessGate} {
		all[string(name)] = gates.Enabled(name)
	}
	return all
}

// gatesFlag is the value of a flag that sets gates, each for itself: those it does not
// name stay as they are.
type gatesFlag struct{ gates *map[string]bool }

// Set reads pairs like A=true,B=false.
func (f gatesFlag) Set(text string) error {
	given := map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if name == "" {
			continue
		}
		if !slices.Contains(knownGates(), name) {
			return fmt.Errorf("unknown gate %q, want one of %s", name, strings.Join(knownGates(), ", "))
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%s=%q: want true or false", name, value)
		}
		given[name] = on
	}
	if *f.gates == nil {
		*f.gates = map[string]bool{}
	}
	maps.Copy(*f.gates, given)
	return nil
}

// Type is how the help calls the value.
func (f gatesFlag) Type() string { return "gates" }

// String writes the gates as Set reads them.
func (f gatesFlag) String() string {
	if f.gates == nil {
		return ""
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(*f.gates)) {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, (*f.gates)[name]))
	}
	return strings.Join(pairs, ",")
}
