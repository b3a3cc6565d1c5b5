// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"testing"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

func TestReasonFirst(t *testing.T) {
	for name, test := range map[string]struct {
		handler   probe.Handler
		err, want string
	}{
		"missing program": {probe.HandlerExec, "run command in container 1-main-0: start nope: no such program in PATH", "no such program in PATH (start nope)"},
		"ended container": {probe.HandlerExec, "run command in container 1-main-0: run sh: container main ended", "container main ended (run sh)"},
		"only the cause":  {probe.HandlerExec, "run command in container 1-main-0: cancelled", "cancelled"},
		"no context":      {probe.HandlerExec, "cancelled", "cancelled"},
		"network probe":   {probe.HandlerHTTP, "get http://a: b", "get http://a: b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasonFirst(worker.Run{Handler: test.handler, Err: errors.New(test.err)}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
