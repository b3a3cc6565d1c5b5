// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"io"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/timeline/chart"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/internal/web/history"
)

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"since":  {(&Options{Output: "svg"}).Validate(), "--since: 0s is invalid: must be more than 0"},
		"output": {(&Options{Since: 1, Output: "png"}).Validate(), `--output: "png" is invalid: must be text, json, yaml or svg`},
	} {
		t.Run(name, func(t *testing.T) {
			if test.err == nil || test.err.Error() != test.want {
				t.Errorf("error %v, want %s", test.err, test.want)
			}
		})
	}
}

func hostileTimeline() chart.Timeline {
	end := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	return chart.Timeline{Start: end.Add(-time.Hour), End: end, Lines: []history.Line{{
		Marker: "m", Probe: "p", Spans: []history.Span{{Start: end.Add(-time.Hour), End: end, Phase: history.Failed, Message: texttest.Hostile}},
	}}}
}

func TestTimelineIsSafe(t *testing.T) {
	clitest.CheckReport(t, func(out io.Writer, format printing.Report) error {
		o := Options{IOStreams: genericiooptions.IOStreams{Out: out}, Output: format}
		return o.print(hostileTimeline())
	})
}
