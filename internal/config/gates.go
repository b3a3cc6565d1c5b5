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

// The feature gates, with the names that OpenKruise uses.
const (
	// PodProbeMarkerGate enables the controllers. Default true.
	PodProbeMarkerGate = "PodProbeMarkerGate"
	// ServerlessGate enables support for pods on virtual nodes. Default false.
	ServerlessGate = "EnablePodProbeMarkerOnServerless"
)

// newGates returns the gates with their defaults. They include AllAlpha and AllBeta, which
// set the gates of a stage that are not set by name.
func newGates() featuregate.MutableFeatureGate {
	gates := featuregate.NewFeatureGate()
	// Add cannot fail before the gates are used.
	_ = gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		PodProbeMarkerGate: {Default: true, PreRelease: featuregate.Beta},
		ServerlessGate:     {Default: false, PreRelease: featuregate.Alpha},
	})
	return gates
}

// knownGates returns the names of all gates, sorted.
func knownGates() []string {
	var names []string
	for name := range newGates().GetAll() {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// effective returns the given gates and the resulting values of Seamark's gates. It keeps
// unknown gates, which validation rejects.
func effective(given map[string]bool) map[string]bool {
	gates := newGates()
	known := maps.Clone(given)
	maps.DeleteFunc(known, func(name string, _ bool) bool { return !slices.Contains(knownGates(), name) })
	// SetFromMap cannot fail: the gates are known and not locked.
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

// gatesFlag is the value of a flag that sets the gates it names and keeps the others.
type gatesFlag struct{ gates *map[string]bool }

// Set parses pairs such as A=true,B=false.
func (f gatesFlag) Set(text string) error {
	given := map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if name == "" {
			continue
		}
		if !slices.Contains(knownGates(), name) {
			return fmt.Errorf("unknown feature gate %q: must be one of %s", name, strings.Join(knownGates(), ", "))
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%s=%q: must be true or false", name, value)
		}
		given[name] = on
	}
	if *f.gates == nil {
		*f.gates = map[string]bool{}
	}
	maps.Copy(*f.gates, given)
	return nil
}

// Type returns the name of the value in the help.
func (f gatesFlag) Type() string { return "gates" }

// String returns the gates in the format that Set parses.
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
