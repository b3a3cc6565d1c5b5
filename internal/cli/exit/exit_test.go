// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exit_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestCode(t *testing.T) {
	x := errors.New("x")
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"no error":                 {nil, exit.OK},
		"no failure":               {exit.Failure(nil), exit.OK},
		"failure":                  {exit.Failure(x), exit.Failed},
		"wrapped failure":          {fmt.Errorf("y: %w", exit.Failure(x)), exit.Failed},
		"joined failure":           {errors.Join(x, exit.Failure(x)), exit.Failed},
		"no access":                {exit.NoAccess(x), exit.Access},
		"joined with no access":    {errors.Join(exit.Failure(x), exit.NoAccess(x)), exit.Access},
		"no access, in order":      {errors.Join(exit.NoAccess(x), x, exit.Failure(x)), exit.Access},
		"no access during a run":   {exit.Failure(fmt.Errorf("y: %w", exit.NoAccess(x))), exit.Access},
		"failure while connecting": {exit.NoAccess(exit.Failure(x)), exit.Failed},
		"other error":              {x, exit.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, fmt.Sprintf("Code(%v)", test.err), test.want, exit.Code(test.err))
		})
	}
}
