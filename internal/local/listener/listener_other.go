// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package listener

// All returns nothing without /proc.
func All() ([]Listener, error) { return nil, nil }

// Owns is not sure without /proc.
func Owns(int, Listener) (owns, sure bool) { return false, false }

// Owners returns nothing without /proc.
func Owners(Listener) []Process { return nil }
