// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestPreDownload checks on which nodes the images of an update in place are pulled.
func TestPreDownload(t *testing.T) {
	two := func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Partition = number(1) }
	for name, tc := range map[string]struct {
		change []func(*v1alpha1.CloneSet)
		pods   string
		want   []string
	}{
		"in place":                   {[]func(*v1alpha1.CloneSet){inPlace}, "a old, b old, c old", []string{"node-a", "node-b", "node-c"}},
		"partition, not ready first": {[]func(*v1alpha1.CloneSet){inPlace, two}, "a old, b old, c old notReady", []string{"node-c", "node-a"}},
		"one updated":                {[]func(*v1alpha1.CloneSet){inPlace}, "a old, b, c old", []string{"node-a", "node-c"}},
		"recreated":                  {nil, "a old, b old, c old", nil},
		"not possible in place":      {[]func(*v1alpha1.CloneSet){inPlace, env}, "a old, b old, c old", nil},
		"one step updates all":       {[]func(*v1alpha1.CloneSet){inPlace, unavailable(percent("100%"))}, "a old, b old, c old", nil},
		"no old pod":                 {[]func(*v1alpha1.CloneSet){inPlace}, "a, b, c", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, tc.change...).pod(tc.pods)
			in := f.input()
			in.PreDownload = true
			out, err := Plan(f.set, in, false)
			expect.NoError(t, err)
			var nodes []string
			if len(out.CreatePulls) > 0 {
				nodes = out.CreatePulls[0].Spec.Selector.Names
			}
			expect.Equal(t, "images are pulled on", tc.want, nodes)
		})
	}
}

// TestPreDownloadFields checks the fields about pulls, and that annotations take precedence.
func TestPreDownloadFields(t *testing.T) {
	fields := func(set *v1alpha1.CloneSet) {
		inPlace(set)
		set.Spec.UpdateStrategy.InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{
			ImagePreDownloadParallelism: percent("50%"), ImagePreDownloadTimeoutSeconds: pointer(int32(60)), ImagePreDownloadMinUpdatedReadyPods: percent("30%"),
		}
	}
	annotated := func(set *v1alpha1.CloneSet) {
		fields(set)
		set.Annotations = map[string]string{
			v1alpha1.PreDownloadParallelismKey: "2", v1alpha1.PreDownloadTimeoutKey: "90", v1alpha1.PreDownloadMinUpdatedReadyKey: "0",
		}
	}
	for name, tc := range map[string]struct {
		change     func(*v1alpha1.CloneSet)
		pods, want string
	}{
		"defaults":             {inPlace, "a old, b old, c old", "1 300"},
		"too few updated pods": {fields, "a old, b old, c old", ""},
		"fields":               {fields, "a, b old, c old", "50% 60"},
		"annotations":          {annotated, "a old, b old, c old", "2 90"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, tc.change).pod(tc.pods)
			in := f.input()
			in.PreDownload = true
			out, err := Plan(f.set, in, false)
			expect.NoError(t, err)
			got := ""
			if len(out.CreatePulls) > 0 {
				spec := &out.CreatePulls[0].Spec
				got = fmt.Sprint(spec.Parallelism, " ", *spec.PullPolicy.TimeoutSeconds)
			}
			expect.Equal(t, "pulls with", tc.want, got)
		})
	}
}
