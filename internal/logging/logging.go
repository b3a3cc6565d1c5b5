// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging is how Seamark's programs log: the form of a line, and what the levels
// mean.
//
// A line that concerns a pod has the key pod with the value namespace/name, one that
// concerns a marker the key marker with namespace/name, and one that concerns a node the
// key node: what became of a pod is found by one text in the logs of all programs.
package logging

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

// The levels, as logr.Logger.V takes them. At level 0, which has no name, are changes of
// state, and what somebody must act on; errors are logged whatever the level.
const (
	// Writes is the level of each write to the API server, and of what it says of a pod.
	Writes = 1
	// Decisions is the level of what is worked out, with or without a write after it.
	Decisions = 2
	// Runs is the level of each single run of a probe.
	Runs = 4
)

// New returns a logger that writes lines to w. What is above the verbosity is left out,
// and what is above level 0 reads level=DEBUG with its own level as v. A format that is
// not JSON is text.
func New(w io.Writer, options v1alpha1.Logging) logr.Logger {
	handling := &slog.HandlerOptions{Level: slog.Level(-options.Verbosity), ReplaceAttr: nameLevel}
	if options.Format == v1alpha1.LogJSON {
		return logr.FromSlogHandler(slog.NewJSONHandler(w, handling))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(w, handling))
}

// nameLevel spells a level as readers of logs know it: INFO, ERROR, and DEBUG with a
// number, where slog has DEBUG+3 for the first level above the default.
func nameLevel(groups []string, attr slog.Attr) slog.Attr {
	level, isLevel := attr.Value.Any().(slog.Level)
	if len(groups) > 0 || attr.Key != slog.LevelKey || !isLevel || level >= slog.LevelInfo {
		return attr
	}
	return slog.GroupAttrs("", slog.String(slog.LevelKey, slog.LevelDebug.String()), slog.Int("v", int(-level)))
}
