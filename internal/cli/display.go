// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/local"
)

// printer writes one change.
type printer interface {
	Print(change local.Change) error
}

// lines shows each change by a printer.
type lines struct{ printer printer }

// Show prints what the feed has until it ends.
func (l lines) Show(changes *feed) error {
	for {
		batch := changes.next()
		if len(batch) == 0 {
			return nil
		}
		for _, change := range batch {
			if err := l.printer.Print(change); err != nil {
				return err
			}
		}
	}
}

// display returns what shows the run, by the options.
func (o *LocalOptions) display(s *session) display {
	if o.Output == "json" {
		return lines{output.NewJSON(o.Out)}
	}
	var pods []string
	for _, view := range s.runner.Snapshot() {
		pods = append(pods, view.Pod.Name)
	}
	return lines{output.NewText(o.Out, pods)}
}
