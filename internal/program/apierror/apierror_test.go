// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apierror_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/internal/program/apierror"
	"github.com/seamark-dev/seamark/test/expect"
)

// The messages are those of the API server.
func TestUser(t *testing.T) {
	refused := func(message string) error {
		return fmt.Errorf("list pods: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New(message)))
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"user":      {refused(`User "ann" cannot get resource "pods" in API group "" in the namespace "games"`), "ann"},
		"quotes":    {refused(`User "a \"b\" \\ c" cannot get resource "pods" in API group "" at the cluster scope`), `a "b" \ c`},
		"replaced":  {refused(`User "a&lt;b&gt;&amp;lt;" cannot get path "/"`), "a<b>&lt;"},
		"other end": {refused(`User "a" cannot get resource "b" cannot`), "a"},
		"no end":    {refused(`User "a`), ""},
		"admission": {refused(`the policy refuses the user "ann"`), ""},
		"no answer": {errors.New(` is forbidden: User "ann" cannot`), ""},
	} {
		t.Run(name, func(t *testing.T) { expect.Equal(t, "user", test.want, apierror.User(test.err)) })
	}
}
