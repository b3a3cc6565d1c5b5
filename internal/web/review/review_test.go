// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/review"
)

// apiServer answers reviews. The user of a token has the token as name.
type apiServer struct {
	// rejects is a part of the tokens that are not accepted.
	rejects string
	denies  func(spec *authorizationv1.SubjectAccessReviewSpec) bool
	err     error
	denied  atomic.Bool

	tokens, accesses atomic.Int32
}

func (s *apiServer) create(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
	switch o := object.(type) {
	case *authenticationv1.TokenReview:
		s.tokens.Add(1)
		o.Status.Authenticated = s.rejects == "" || !strings.Contains(o.Spec.Token, s.rejects)
		o.Status.User.Username = o.Spec.Token
	case *authorizationv1.SubjectAccessReview:
		s.accesses.Add(1)
		o.Status.Allowed = !s.denied.Load() && (s.denies == nil || !s.denies(&o.Spec))
	}
	return s.err
}

func (s *apiServer) guard() *review.Guard {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Create: s.create}).Build()
	return review.New(c, func(string) (client.Reader, error) { return c, nil })
}

func request(t *testing.T, authorization string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("Authorization", authorization)
	return r
}

// statusOf returns the status of a refusal, or 0.
func statusOf(err error) int {
	refusal := &web.Refusal{}
	if errors.As(err, &refusal) {
		return refusal.Status
	}
	return 0
}

func TestRefusals(t *testing.T) {
	deny := func(resource, namespace string) func(*authorizationv1.SubjectAccessReviewSpec) bool {
		return func(spec *authorizationv1.SubjectAccessReviewSpec) bool {
			a := spec.ResourceAttributes
			return a.Resource == resource && a.Namespace == namespace
		}
	}
	for name, test := range map[string]struct {
		authorization string
		server        *apiServer
		status        int
		message       string
	}{
		"no token":         {server: &apiServer{}, status: 401, message: "no bearer token"},
		"other scheme":     {authorization: "Basic amFuZQ==", server: &apiServer{}, status: 401, message: "no bearer token"},
		"long token":       {authorization: "Bearer " + strings.Repeat("a", 20_000), server: &apiServer{}, status: 401, message: "no bearer token"},
		"rejected token":   {authorization: "Bearer old", server: &apiServer{rejects: "old"}, status: 401, message: "does not accept the token"},
		"no pods":          {authorization: "Bearer jane", server: &apiServer{denies: deny("pods", "ns")}, status: 403, message: `"jane" has no permission to list pods in namespace ns`},
		"no markers":       {authorization: "Bearer jane", server: &apiServer{denies: deny("podprobemarkers", "ns")}, status: 403, message: "podprobemarkers.apps.kruise.io in namespace ns"},
		"no answer":        {authorization: "Bearer jane", server: &apiServer{err: errors.New("lost")}, message: "review the token: lost"},
		"no token, no API": {server: &apiServer{err: errors.New("lost")}, status: 401, message: "no bearer token"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.server.guard().Admit(request(t, test.authorization), "ns", false)
			if err == nil || statusOf(err) != test.status || !strings.Contains(err.Error(), test.message) {
				t.Errorf("Admit() = %v with status %d, want %q with status %d", err, statusOf(err), test.message, test.status)
			}
		})
	}
}

func TestAccess(t *testing.T) {
	server := &apiServer{denies: func(spec *authorizationv1.SubjectAccessReviewSpec) bool {
		a := spec.ResourceAttributes
		return a.Namespace == "" || a.Resource == "events"
	}}
	access, err := server.guard().Admit(request(t, "Bearer jane"), "ns", false)
	if err != nil {
		t.Fatal(err)
	}
	if access.User != "jane" || access.Full || len(access.Namespaces) != 1 || access.Namespaces[0] != "ns" || access.NoEvents == nil {
		t.Errorf("Admit() = %+v, want one namespace, without reports and events", access)
	}
	everywhere, err := (&apiServer{}).guard().Admit(request(t, "Bearer admin"), "", false)
	if err != nil || !everywhere.Full || everywhere.Namespaces != nil || everywhere.NoEvents != nil {
		t.Errorf("Admit() = %+v, %v, want everything", everywhere, err)
	}
}

func TestReviewsAreKept(t *testing.T) {
	server := &apiServer{rejects: "old"}
	guard := server.guard()
	for range 5 {
		if _, err := guard.Admit(request(t, "Bearer jane"), "ns", false); err != nil {
			t.Fatal(err)
		}
		if _, err := guard.Admit(request(t, "Bearer old"), "ns", false); statusOf(err) != http.StatusUnauthorized {
			t.Fatalf("Admit() = %v, want status 401", err)
		}
	}
	// Two resources in the namespace and everywhere, and four of states, each with two verbs, and events.
	if tokens, accesses := server.tokens.Load(), server.accesses.Load(); tokens != 2 || accesses != 17 {
		t.Errorf("%d TokenReviews and %d SubjectAccessReviews, want 2 and 17", tokens, accesses)
	}
}

// refusedAfter returns how many requests are admitted until one is refused because there are too many.
func refusedAfter(t *testing.T, admit func(i int) error) int {
	t.Helper()
	for i := range 10_000 {
		switch err := admit(i); {
		case err == nil:
		case statusOf(err) == http.StatusTooManyRequests:
			return i
		default:
			t.Fatal(err)
		}
	}
	t.Fatal("no request was refused")
	return 0
}

func TestRequestsOfAUserAreLimited(t *testing.T) {
	guard := (&apiServer{}).guard()
	admit := func(user string) func(int) error {
		return func(int) error {
			_, err := guard.Admit(request(t, "Bearer "+user), "ns", false)
			return err
		}
	}
	if n := refusedAfter(t, admit("jane")); n < 60 {
		t.Errorf("refused after %d requests, want a burst of 60", n)
	}
	if err := admit("john")(0); err != nil {
		t.Errorf("another user is refused: %v", err)
	}
}

// A new review of the token gives the user no new burst.
func TestLimitOutlivesReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := (&apiServer{}).guard()
		admitted := 0
		const seconds = 60
		for range seconds * 10 {
			for range 5 {
				if _, err := guard.Admit(request(t, "Bearer jane"), "ns", false); err == nil {
					admitted++
				}
			}
			<-time.After(time.Second / 10)
		}
		if want := 60 + 10*seconds; admitted > want || admitted < want-10 {
			t.Errorf("%d requests in %d seconds, want %d: 10 per second and a burst of 60", admitted, seconds, want)
		}
	})
}

// The streams of a user who sends as many requests as possible are checked like those of others.
func TestChecksOfStreamsAreNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{}
		guard := server.guard()
		exhaust := func() {
			for _, token := range []string{"jane", "guess"} {
				for i := range 200 {
					_, _ = guard.Admit(request(t, fmt.Sprintf("Bearer %s-%d", token, i)), "ns", false)
					_, _ = guard.Admit(request(t, "Bearer jane"), "ns", false)
				}
			}
		}
		exhaust()
		if _, err := guard.Admit(request(t, "Bearer jane"), "ns", true); err != nil {
			t.Errorf("Admit() = %v, want no error", err)
		}
		server.denied.Store(true)
		<-time.After(11 * time.Second)
		exhaust()
		if _, err := guard.Admit(request(t, "Bearer jane"), "ns", true); statusOf(err) != http.StatusForbidden {
			t.Errorf("Admit() = %v, want status 403", err)
		}
	})
}

func TestUnknownTokensAreLimited(t *testing.T) {
	server := &apiServer{rejects: "guess"}
	guard := server.guard()
	if _, err := guard.Admit(request(t, "Bearer jane"), "ns", false); err != nil {
		t.Fatal(err)
	}
	refusedAfter(t, func(i int) error {
		_, err := guard.Admit(request(t, fmt.Sprintf("Bearer guess-%d", i)), "ns", false)
		if statusOf(err) == http.StatusUnauthorized {
			return nil
		}
		return err
	})
	if _, err := guard.Admit(request(t, "Bearer jane"), "ns", false); err != nil {
		t.Errorf("a known user is refused: %v", err)
	}
}
