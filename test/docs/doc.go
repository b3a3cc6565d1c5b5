// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs runs every command in the documentation and compares its output with the
// output that the page shows. It also checks links.
//
// Commands are in fenced code blocks of the language console. A command in any other block
// is an error, and so are HTML and unknown languages. A line that begins with "$ " starts a
// command, which continues for as many lines as the shell needs. The lines up to the next
// command are its expected output, on stdout and stderr. If there are none, the output is
// not compared. Output matches line by line:
//
//   - "..." matches any text within a line, and on a line of its own any number of lines;
//   - blanks match any number of blanks;
//   - generated pod names, durations, times, IPv4 addresses and UUIDs match any value of the
//     same form.
//
// The commands of a document run in one bash process, in the root of the repository, so
// variables are kept. The first command that fails ends the document. A read-only command
// (kubectl get, describe, logs and events, seamark get, curl) is repeated until its output matches,
// as a reader would repeat it. A document must wait for anything else with kubectl wait.
// Commands have
//
//   - a namespace per document, as the current namespace of kubectl;
//   - the programs of the repository, kubectl, and helm at the pinned version. helm receives
//     the additional values of the local cluster.
//
// A command that only calls make is skipped if another test runs its targets (see covered).
//
// HTML comments control a run:
//
//	<!-- needs: local -->         the commands need no cluster
//	<!-- needs: cluster -->       the commands need a cluster with Seamark, at the same time as other documents
//	<!-- needs: alone -->         the commands disturb other documents, as a restart does, and leave Seamark working
//	<!-- needs: installation -->  the commands change the installation, which is restored afterwards
//	<!-- needs: recipe -->        the commands need a cluster with Seamark and the image of a recipe: make test-recipes
//	<!-- not run: REASON -->      the next block can't be run here
//	<!-- fails -->                the last command of the next block fails
//	<!-- interrupt -->            the last command runs until Ctrl-C, which is sent when its output matches
//	<!-- timeout: 5m -->          the timeout of each command below, instead of two minutes
//	<!-- run: COMMANDS -->        commands that are not shown
//	<!-- finally: COMMANDS -->    commands that are not shown and always run at the end
package docs
