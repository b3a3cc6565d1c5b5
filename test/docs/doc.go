// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs runs every command that the documents show, as their reader would, and
// compares what it prints with what they say it prints. Links are followed too.
//
// Commands stand in fenced blocks of the language console and nowhere else: what reads as
// one in another block is refused, and so are HTML and languages that are not known. A
// line that begins with "$ " begins a command, which goes on over as many lines as the shell wants.
// The lines up to the next command are its output on both streams; without any it is not
// compared. Output matches line for line, where
//
//   - "..." is any text within a line, and as a line of its own any lines;
//   - blanks match any number of blanks;
//   - generated pod names, durations, times, IPv4 addresses and UUIDs match anything of
//     their form.
//
// The commands of a document run in one bash, in the root of the repository, so that
// variables live on. It ends with the first command that fails. A command that only looks
// (kubectl get, describe, logs and events, curl) is repeated until it prints what is
// expected: its reader would look again as well. Whatever else has to be waited for, the
// document waits for, with kubectl wait. Commands see
//
//   - a namespace of the document's own as the current one of kubectl;
//   - the programs of the repository, kubectl, and helm at the pinned version. The
//     latter gets the values that only the local cluster needs.
//
// What make does is not run again where another test runs it, if the line calls nothing
// else: covered lists the targets.
//
// Comments say what the reader need not see:
//
//	<!-- needs: local -->         the commands need no cluster
//	<!-- needs: cluster -->       they need a cluster with Seamark
//	<!-- needs: installation -->  they change what is installed; made good afterwards
//	<!-- not run: REASON -->      the next block can't be run here
//	<!-- fails -->                the last command of the next block fails
//	<!-- interrupt -->            that command runs until Ctrl-C, sent when its output is seen
//	<!-- timeout: 5m -->          how long each command below may take, instead of two minutes
//	<!-- run: COMMANDS -->        commands that are not shown
//	<!-- finally: COMMANDS -->    the same, run at the end in any case
package docs
