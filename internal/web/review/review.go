// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package review decides what the users of the manager's web page may read: what the API server lets
// them read. The bearer token of a request is checked by a TokenReview, and each permission by a
// SubjectAccessReview. Both are kept for a short time.
package review

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/eventlog"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/internal/web/objects"
)

const (
	// keepAllowed and keepDenied are how long a review is kept. A permission that is taken away
	// ends a stream after keepAllowed and one check of the stream.
	keepAllowed = 10 * time.Second
	keepDenied  = 5 * time.Second
	// maxUsers and maxAnswers are the numbers of reviews that are kept.
	maxUsers   = 1000
	maxAnswers = 20_000
	// maxToken is the maximum length of a token in bytes.
	maxToken = 16 << 10
	// timeout limits one review.
	timeout = 10 * time.Second
	// userRate and userBurst limit the requests of one user per second.
	userRate, userBurst = 10, 60
	// keepLimiter is how long the limiter of a user is kept after a request. Until then it has its
	// whole burst again, so a new limiter admits no more.
	keepLimiter = 10 * time.Second
	// unknownRate and unknownBurst limit the TokenReviews per second.
	unknownRate, unknownBurst = 20, 60
	// concurrency is the number of reviews at the same time for one request.
	concurrency = 4
)

// Guard decides what the users of requests may read.
type Guard struct {
	client  client.Client
	as      As
	unknown flowcontrol.RateLimiter
	// users are *user by the hash of the token, and answers are bool by question.
	users, answers *cache.LRUExpireCache

	mu sync.Mutex
	// limiters are flowcontrol.RateLimiter by the name of the user. They outlive the reviews of
	// tokens.
	limiters *cache.LRUExpireCache
}

// As returns a client that reads events and SidecarSets with the token of a user.
type As func(token string) (client.Reader, error)

// New returns a guard. The client must be allowed to create TokenReviews and SubjectAccessReviews.
// Events and SidecarSets are read as the user.
func New(c client.Client, as As) *Guard {
	return &Guard{
		client: c, as: as, unknown: flowcontrol.NewTokenBucketRateLimiter(unknownRate, unknownBurst),
		users: cache.NewLRUExpireCache(maxUsers), answers: cache.NewLRUExpireCache(maxAnswers),
		limiters: cache.NewLRUExpireCache(maxUsers),
	}
}

type hash [sha256.Size]byte

// user is a token that was reviewed.
type user struct {
	key hash
	// refusal is why the token is not accepted, or nil.
	refusal *web.Refusal
	info    authenticationv1.UserInfo
}

// Admit is a web.Guard. A check of a stream has no limit of requests: otherwise a user could send so
// many requests that no check succeeds.
func (g *Guard) Admit(r *http.Request, namespace string, again bool) (web.Access, error) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found || token == "" || len(token) > maxToken {
		return web.Access{}, unauthorized("the request has no bearer token: use seamark ui")
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	u, err := g.user(ctx, token, again)
	if err != nil {
		return web.Access{}, err
	}
	if !again && !g.limiter(u.info.Username).TryAccept() {
		return web.Access{}, &web.Refusal{Status: http.StatusTooManyRequests, Message: "too many requests: try again later"}
	}
	return g.access(ctx, u, token, namespace)
}

func unauthorized(message string) *web.Refusal {
	return &web.Refusal{Status: http.StatusUnauthorized, Message: message}
}

// limiter returns the limiter of the requests of a user.
func (g *Guard) limiter(name string) flowcontrol.RateLimiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept, _ := g.limiters.Get(name)
	limiter, found := kept.(flowcontrol.RateLimiter)
	if !found {
		limiter = flowcontrol.NewTokenBucketRateLimiter(userRate, userBurst)
	}
	g.limiters.Add(name, limiter, keepLimiter)
	return limiter
}

func (g *Guard) user(ctx context.Context, token string, again bool) (*user, error) {
	key := hash(sha256.Sum256([]byte(token)))
	if kept, found := g.users.Get(key); found {
		u, _ := kept.(*user)
		if u.refusal != nil {
			return nil, u.refusal
		}
		return u, nil
	}
	if !again && !g.unknown.TryAccept() {
		return nil, &web.Refusal{Status: http.StatusTooManyRequests, Message: "too many new users: try again later"}
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := g.client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("review the token: %w", err)
	}
	u := &user{key: key, info: review.Status.User}
	if !review.Status.Authenticated {
		u.refusal = unauthorized("the API server does not accept the token: log in again")
		g.users.Add(key, u, keepDenied)
		return nil, u.refusal
	}
	g.users.Add(key, u, keepAllowed)
	return u, nil
}

// access returns what the user may read.
func (g *Guard) access(ctx context.Context, u *user, token, namespace string) (web.Access, error) {
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	var refused, everywhere, full, noEvents *question
	ask := func(target **question, namespace string, verbs []string, resources ...permission.Resource) {
		group.Go(func() error {
			first, err := g.firstDenied(groupContext, u, namespace, verbs, resources)
			*target = first
			return err
		})
	}
	both := []string{"list", "watch"}
	ask(&refused, namespace, both, permission.Required()...)
	if namespace != "" {
		ask(&everywhere, "", both, permission.Required()...)
	}
	ask(&full, "", both, permission.States()...)
	ask(&noEvents, namespace, both[:1], permission.Events)
	if err := group.Wait(); err != nil {
		return web.Access{}, err
	}
	if refused != nil {
		return web.Access{}, &web.Refusal{Status: http.StatusForbidden, Message: refusal(refused.Missing, u.info.Username)}
	}
	access := web.Access{User: u.info.Username, Full: full == nil}
	access.Events = func(ctx context.Context, pod model.Key) ([]corev1.Event, error) {
		reader, err := g.as(token)
		if err != nil {
			return nil, err
		}
		return eventlog.Events(ctx, reader, pod.Namespace, pod.Name)
	}
	access.Problems = func(ctx context.Context) ([]model.ObjectProblem, error) {
		reader, err := g.as(token)
		if err != nil {
			return nil, err
		}
		return objects.Problems(ctx, reader)
	}
	if everywhere != nil {
		access.Namespaces = []string{namespace}
	}
	if noEvents != nil {
		access.NoEvents = fmt.Errorf("user %q has %s, so only the last change is known", u.info.Username, noEvents)
	}
	return access, nil
}

// firstDenied returns the first verb and resource that the user may not use, or nil.
func (g *Guard) firstDenied(ctx context.Context, u *user, namespace string, verbs []string, resources []permission.Resource) (*question, error) {
	for _, r := range resources {
		for _, verb := range verbs {
			q := question{u.key, permission.Missing{Resource: r, Verb: verb, Namespace: namespace}}
			allowed, err := g.ask(ctx, u, q)
			if err != nil {
				return nil, err
			}
			if !allowed {
				return &q, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // nothing is denied
}

// question is what a SubjectAccessReview asks: whether a user lacks a permission.
type question struct {
	user hash
	permission.Missing
}

// refusal says what the user lacks and how to get it.
func refusal(missing permission.Missing, user string) string {
	choose := ""
	if missing.Namespace == "" {
		choose = "choose a namespace, or "
	}
	return fmt.Sprintf("user %q has %s; %sask for: %s", user, missing, choose, missing.Grant(user))
}

// ask returns whether the user may do what the question asks.
func (g *Guard) ask(ctx context.Context, u *user, q question) (bool, error) {
	if kept, found := g.answers.Get(q); found {
		allowed, _ := kept.(bool)
		return allowed, nil
	}
	asked := q.Resource.GroupResource()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.info.Username, UID: u.info.UID, Groups: u.info.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: q.Namespace, Verb: q.Verb, Group: asked.Group, Resource: asked.Resource},
	}}
	for name, values := range u.info.Extra {
		review.Spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	if err := g.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review access: %w", err)
	}
	keep := keepDenied
	if review.Status.Allowed {
		keep = keepAllowed
	}
	g.answers.Add(q, review.Status.Allowed, keep)
	return review.Status.Allowed, nil
}
