// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"encoding/json"
	"errors"
	"log"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestNew(t *testing.T) {
	write := func(log logr.Logger) {
		log = log.WithName("report").WithValues("node", "node-1")
		log.Info("State", "pod", "games/a")
		log.V(Writes).Info("Write", "pod", "games/a")
		log.V(Decisions).Info("Decision", "settings", json.RawMessage(`{"a":1}`))
		log.V(Runs).Error(errors.New("no route"), "Run")
	}
	cases := map[string]struct {
		options v1alpha1.Logging
		want    []string
	}{
		"default": {v1alpha1.Logging{}, []string{
			`level=INFO msg=State node=node-1 logger=report pod=games/a`,
			`level=ERROR msg=Run node=node-1 logger=report err="no route"`,
		}},
		"writes": {v1alpha1.Logging{Verbosity: 1, Format: v1alpha1.LogText}, []string{
			`level=INFO msg=State node=node-1 logger=report pod=games/a`,
			`level=DEBUG v=1 msg=Write node=node-1 logger=report pod=games/a`,
			`level=ERROR msg=Run node=node-1 logger=report err="no route"`,
		}},
		"JSON": {v1alpha1.Logging{Verbosity: 10, Format: v1alpha1.LogJSON}, []string{
			`"level":"INFO","msg":"State","node":"node-1","logger":"report","pod":"games/a"}`,
			`"level":"DEBUG","v":1,"msg":"Write","node":"node-1","logger":"report","pod":"games/a"}`,
			`"level":"DEBUG","v":2,"msg":"Decision","node":"node-1","logger":"report","settings":{"a":1}}`,
			`"level":"ERROR","msg":"Run","node":"node-1","logger":"report","err":"no route"}`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			write(New(&out, tc.options))
			time := regexp.MustCompile(`^(time=\S+ |\{"time":"[^"]+",)`)
			var got []string
			for line := range strings.Lines(out.String()) {
				got = append(got, time.ReplaceAllString(strings.TrimSpace(line), ""))
			}
			expect.Equal(t, "lines", tc.want, got)
		})
	}
}

func TestStandard(t *testing.T) {
	for name, tc := range map[string]struct {
		verbosity int32
		want      int
	}{"hidden by default": {verbosity: Writes}, "shortened": {verbosity: Runs, want: maxStandardBytes}} {
		t.Run(name, func(t *testing.T) {
			var lines strings.Builder
			logger := log.New(Standard(New(&lines, v1alpha1.Logging{Verbosity: tc.verbosity})), "", 0)
			logger.Print(strings.Repeat("x", 4096))
			if got := strings.Count(lines.String(), "x"); got != tc.want {
				t.Errorf("%d bytes are logged, want %d:\n%s", got, tc.want, lines.String())
			}
		})
	}
}
