// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui tests the web page in Chromium: the handler of package internal/web serves it, with
// pods that the tests make up. It is a separate module because it imports a client of Chromium's
// debugging protocol.
//
// Every test also checks that the page reports no error, that nothing violates the content security
// policy, and that the browser sends requests to the server of the test only.
//
// The tests run the program chromium, which `make test-ui` provides.
package ui
