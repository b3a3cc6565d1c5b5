// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// Options are what a Handler serves.
type Options struct {
	// Source has the pods and markers.
	Source Source
	// Access returns what the user may read now.
	Access func() Access
	// Session has the source, the version and the first namespace of all sessions.
	Session model.Session
	// Limits bound what is kept for pages.
	Limits Limits
}

// Handler serves the page at /, and its API below /api/v1.
type Handler struct {
	options Options
	limits  Limits
	hub     *hub
	mux     *http.ServeMux
	// requests has a value for each request that is being answered, except streams.
	requests chan struct{}
	// events is locked while a timeline or a set is read.
	events sync.Mutex
}

// New returns the handler. The caller closes it.
func New(options Options) *Handler {
	limits := options.Limits.withDefaults()
	h := &Handler{
		options: options, limits: limits, hub: newHub(options.Source, limits), mux: http.NewServeMux(),
		requests: make(chan struct{}, maxRequests),
	}
	h.mux.HandleFunc("/", servePage)
	h.mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) { WriteError(w, errNoPath) })
	h.mux.HandleFunc("/api/v1/session", h.limited(h.session))
	h.mux.HandleFunc("/api/v1/problems", h.limited(h.problems))
	h.mux.HandleFunc("/api/v1/timeline", h.limited(h.timeline))
	h.mux.HandleFunc("/api/v1/set", h.limited(h.set))
	h.mux.HandleFunc("/api/v1/namespaces", h.limited(h.namespaces))
	h.mux.HandleFunc("/api/v1/stream", h.answer(h.stream))
	return h
}

// Close ends all streams, and pages do not connect again.
func (h *Handler) Close() { h.hub.close() }

var errNoPath = &Refusal{http.StatusNotFound, "there is nothing at this path"}

// maxQuery is the maximum length of a query, in bytes. The page reads only a part of it.
const maxQuery = 4096

// contentPolicy permits only the files of the page, and requests to its API.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// SetHeaders sets the security headers of all answers.
func SetHeaders(header http.Header) {
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	// An answer may depend on the user, so it is not stored.
	header.Set("Cache-Control", "no-store")
}

// ServeHTTP answers a request. It only reads.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	SetHeaders(w.Header())
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		WriteError(w, &Refusal{http.StatusMethodNotAllowed, fmt.Sprintf("method %q is not allowed: must be GET or HEAD", r.Method)})
	case len(r.URL.RawQuery) > maxQuery:
		WriteError(w, &Refusal{http.StatusRequestURITooLong, fmt.Sprintf("the query must have at most %d bytes", maxQuery)})
	default:
		h.mux.ServeHTTP(w, r)
	}
}

// answer returns a handler that sends the error of the function, if it has not sent anything.
func (h *Handler) answer(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			WriteError(w, err)
		}
	}
}

// limited is like answer, and bounds how many requests are answered at the same time.
func (h *Handler) limited(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return h.answer(func(w http.ResponseWriter, r *http.Request) error {
		select {
		case h.requests <- struct{}{}:
			defer func() { <-h.requests }()
			return f(w, r)
		default:
			return &Refusal{http.StatusTooManyRequests, "too many requests: try again later"}
		}
	})
}

// WriteError sends the error as JSON. A Refusal has a status; every other error is an internal one.
func WriteError(w http.ResponseWriter, err error) {
	refusal := refusalOf(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(refusal.Status)
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(model.Error{Error: refusal.Message})
}

// refusalOf returns the part of an error that is for users.
func refusalOf(err error) *Refusal {
	refusal := &Refusal{http.StatusInternalServerError, err.Error()}
	errors.As(err, &refusal)
	return refusal
}

func writeJSON(w http.ResponseWriter, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone.
	_, _ = w.Write(text)
	return nil
}

// namespaceOf returns the namespace of the query, or empty for all namespaces.
func namespaceOf(r *http.Request) (string, error) {
	namespace := r.URL.Query().Get("namespace")
	if namespace == "" {
		return "", nil
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return "", &Refusal{http.StatusBadRequest, fmt.Sprintf("namespace: %q is invalid: %s", namespace, problems[0])}
	}
	return namespace, nil
}

func (h *Handler) session(w http.ResponseWriter, _ *http.Request) error {
	access, session := h.options.Access(), h.options.Session
	session.User, session.Full, session.ReadOnly = access.User, access.Full, true
	return writeJSON(w, session)
}

// problems sends the problems of objects that the stream does not have.
func (h *Handler) problems(w http.ResponseWriter, r *http.Request) error {
	found := []model.ObjectProblem{}
	if list := h.options.Access().Problems; list != nil {
		var err error
		if found, err = list(r.Context()); err != nil {
			return fmt.Errorf("read the problems: %w", err)
		}
	}
	return writeJSON(w, found)
}

func (h *Handler) timeline(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	since, err := sinceOf(query.Get("since"))
	if err != nil {
		return err
	}
	pod, err := objectOf(r, "pod")
	if err != nil {
		return err
	}
	unlock, err := h.lockEvents()
	if err != nil {
		return err
	}
	defer unlock()
	timeline, err := h.options.Source.Timeline(r.Context(), TimelineQuery{Pod: pod, Since: since})
	if err != nil {
		return fmt.Errorf("read the timeline: %w", err)
	}
	return writeJSON(w, timeline)
}

// objectOf returns the namespace of the query and the name in the parameter. Both are required.
func objectOf(r *http.Request, parameter string) (model.Key, error) {
	name := r.URL.Query().Get(parameter)
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return model.Key{}, &Refusal{http.StatusBadRequest, fmt.Sprintf("%s: %q is invalid: %s", parameter, name, problems[0])}
	}
	namespace, err := namespaceOf(r)
	if err == nil && namespace == "" {
		err = &Refusal{http.StatusBadRequest, fmt.Sprintf("namespace: the namespace of the %s is required", parameter)}
	}
	return model.Key{Namespace: namespace, Name: name}, err
}

// lockEvents permits one request at a time that lists events, which costs the API server the most of all requests.
func (h *Handler) lockEvents() (unlock func(), err error) {
	if !h.events.TryLock() {
		return nil, &Refusal{http.StatusTooManyRequests, "another timeline or set is being read: try again later"}
	}
	return h.events.Unlock, nil
}

// set sends what is known about a set.
func (h *Handler) set(w http.ResponseWriter, r *http.Request) error {
	key, err := objectOf(r, "set")
	if err != nil {
		return err
	}
	id := model.SetID{Namespace: key.Namespace, Kind: r.URL.Query().Get("kind"), Name: key.Name}
	read := h.options.Access().Set
	if read == nil {
		return NoSet(id)
	}
	unlock, err := h.lockEvents()
	if err != nil {
		return err
	}
	defer unlock()
	details, err := read(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read the set: %w", err)
	}
	return writeJSON(w, details)
}

// namespaces sends the namespaces that the user may see, as far as they are known.
func (h *Handler) namespaces(w http.ResponseWriter, r *http.Request) error {
	found := model.Namespaces{Whole: true, Names: []string{}}
	if list := h.options.Access().Namespaces; list != nil {
		var err error
		if found, err = list(r.Context()); err != nil {
			return fmt.Errorf("list the namespaces: %w", err)
		}
	}
	return writeJSON(w, found)
}

// sinceOf returns the length of a timeline.
func sinceOf(value string) (time.Duration, error) {
	switch value {
	case "15m", "1h", "6h":
		return time.ParseDuration(value) //nolint:wrapcheck // it does not fail
	default:
		return 0, &Refusal{http.StatusBadRequest, fmt.Sprintf("since: %q is invalid: must be 15m, 1h or 6h", value)}
	}
}
