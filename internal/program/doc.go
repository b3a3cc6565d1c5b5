// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program is the room of what every program needs and no decision about marks depends on:
// configuration, start, logging, health, queues, and the errors of writes.
package program
