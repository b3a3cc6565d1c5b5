// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging defines the format of log lines and the meaning of the levels, for all
// programs of Seamark.
//
// A line about a pod has the key pod with the value namespace/name, a line about a marker has the
// key marker with namespace/name, and a line about a node has the key node. One search therefore
// finds all lines about a pod in the logs of all programs.
package logging

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// The levels for logr.Logger.V. Level 0 has no name: it is for changes of state, and for problems
// that require action. Errors are logged at any level.
const (
	// Writes is the level of each write to the API server, and of its effect on a pod.
	Writes = 1
	// Decisions is the level of internal decisions, whether or not they cause a write.
	Decisions = 2
	// Runs is the level of each run of a probe.
	Runs = 4
)

// New returns a logger that writes lines to w. It omits lines above the verbosity. Lines above
// level 0 have level=DEBUG and their own level as v. Any format except JSON is text.
func New(w io.Writer, options v1alpha1.Logging) logr.Logger {
	handling := &slog.HandlerOptions{Level: slog.Level(-options.Verbosity), ReplaceAttr: nameLevel}
	if options.Format == v1alpha1.LogJSON {
		return logr.FromSlogHandler(slog.NewJSONHandler(w, handling))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(w, handling))
}

// nameLevel replaces the names that slog gives to levels, such as DEBUG+3 for the first level
// above the default, by INFO, ERROR, and DEBUG with a number.
func nameLevel(groups []string, attr slog.Attr) slog.Attr {
	level, isLevel := attr.Value.Any().(slog.Level)
	if len(groups) > 0 || attr.Key != slog.LevelKey || !isLevel || level >= slog.LevelInfo {
		return attr
	}
	return slog.GroupAttrs("", slog.String(slog.LevelKey, slog.LevelDebug.String()), slog.Int("v", int(-level)))
}

// maxStandardBytes is the maximum number of bytes of a line of the standard library.
const maxStandardBytes = 200

// Standard returns the output for the logger of the standard library. Its lines contain what servers
// send: net/http quotes up to 4 KiB of an answer that comes before the request. They are shortened,
// and have the level of runs, so that a container cannot fill the log.
func Standard(lines logr.Logger) io.Writer { return standard{lines.V(Runs)} }

type standard struct{ lines logr.Logger }

func (s standard) Write(line []byte) (int, error) {
	s.lines.Info("Message of the standard library", "message", text.Truncate(string(line), maxStandardBytes))
	return len(line), nil
}
