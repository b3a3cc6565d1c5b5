// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/web/history"
)

func TestPrintTop(t *testing.T) {
	groups := []history.Group{
		{Namespace: "game", Marker: "server", Node: "n1", Probes: 3, NotRun: 1, PerHour: 0.25, Worst: "game-0 idle", Message: "CannotRun: no\nprogram"},
		{Namespace: "game", Marker: "idle", Node: "node-2", Probes: 12, Failed: 2, Worst: "game-7 idle", Message: strings.Repeat("x", 200)},
	}
	want := "NAMESPACE  MARKER  NODE    PROBES  NOT RUN  SLOW  CHANGES/H  FAILED  WORST\n" +
		"game       server  n1      3       1        0     0.2        0       game-0 idle: CannotRun: no program\n" +
		"game       idle    node-2  12      0        0     0.0        2       game-7 idle: " + strings.Repeat("x", 80) + "\n" +
		"7 more: use --rows\n"
	var out bytes.Buffer
	if err := printTop(&out, groups, 7); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestTimelineStart(t *testing.T) {
	end := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	before := func(d time.Duration) time.Time { return end.Add(-d) }
	pod := func(age time.Duration) []*corev1.Pod {
		return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: metav1.NewTime(before(age))}}}
	}
	event := func(uid types.UID, age time.Duration) []history.Event {
		return []history.Event{{Probe: history.Probe{UID: uid}, First: before(age)}}
	}
	for name, test := range map[string]struct {
		pods   []*corev1.Pod
		events []history.Event
		want   time.Duration
	}{
		"old pod":                        {pod(2 * time.Hour), nil, time.Hour},
		"young pod":                      {pod(10 * time.Minute), nil, 10 * time.Minute},
		"new pod":                        {pod(time.Second), nil, time.Minute},
		"events before the creation":     {pod(10 * time.Minute), event("u", 11*time.Minute), 11 * time.Minute},
		"events of another pod":          {pod(10 * time.Minute), event("other", 50*time.Minute), 10 * time.Minute},
		"events before the whole window": {pod(10 * time.Minute), event("u", 3*time.Hour), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			o := &TimelineOptions{Since: time.Hour}
			if got := o.start(test.pods, test.events, end); !got.Equal(before(test.want)) {
				t.Errorf("start is %s before the end, want %s", end.Sub(got), test.want)
			}
		})
	}
}

func TestHistoryFlags(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	flags := cluster.NewFlags(streams, "test")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"rows":         {(&TopOptions{Flags: flags, Window: 1, Output: "text"}).Validate(), "--rows: 0 is invalid: must be 1 or more"},
		"window":       {(&TopOptions{Flags: flags, Rows: 1, Output: "text"}).Validate(), "--window: 0s is invalid: must be more than 0"},
		"top output":   {(&TopOptions{Flags: flags, Rows: 1, Window: 1, Output: "svg"}).Validate(), `--output: "svg" is invalid: must be text, json or yaml`},
		"since":        {(&TimelineOptions{Output: "svg"}).Validate(), "--since: 0s is invalid: must be more than 0"},
		"timeline":     {(&TimelineOptions{Since: 1, Output: "png"}).Validate(), `--output: "png" is invalid: must be text, svg, json or yaml`},
		"check":        {(&CheckOptions{SeamarkNamespace: "x"}).Validate(), `--output: "" is invalid: must be text, json or yaml`},
		"no namespace": {(&CheckOptions{Output: "text"}).Validate(), "--seamark-namespace: must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.err == nil || test.err.Error() != test.want {
				t.Errorf("error %v, want %s", test.err, test.want)
			}
		})
	}
}
