// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// call is a request of an agent, until the run answers it.
type call struct {
	agent *node
	ended context.Context
	// waits ends when the agent does not wait for the answer any more: then the request never arrives.
	waits  context.Context
	method string
	path   []string
	query  url.Values
	body   []byte
	reply  chan reply
}

func (c *call) String() string {
	return c.agent.process + " " + c.method + " " + strings.Join(c.path, "/")
}

type reply struct {
	response *http.Response
	err      error
}

// transport sends the requests of one agent process to the run. Events are accepted at once.
type transport struct {
	world *world
	agent *node
	ended context.Context
}

// RoundTrip waits for the answer of the run.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.ended.Err() != nil {
		return nil, errDead
	}
	if strings.Contains(r.URL.Path, "/events") {
		return respond(http.StatusCreated, []byte(`{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"}}`)), nil
	}
	c := &call{
		agent: t.agent, ended: t.ended, waits: r.Context(), method: r.Method, query: r.URL.Query(), reply: make(chan reply, 1),
		// Without /apis, the group and the version.
		path: strings.Split(strings.Trim(r.URL.Path, "/"), "/")[3:],
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read the body: %w", err)
		}
		c.body = body
	}
	t.world.mu.Lock()
	t.world.calls = append(t.world.calls, c)
	t.world.mu.Unlock()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err() //nolint:wrapcheck // as a transport does
	case <-t.ended.Done():
		return nil, errDead
	case answer := <-c.reply:
		return answer.response, answer.err
	}
}

func respond(code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// failure is the response with an error of the API server.
func failure(err error) *http.Response {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	content := status.Status()
	content.Kind, content.APIVersion = "Status", "v1"
	response := respond(int(content.Code), encode(content))
	if seconds, suggested := apierrors.SuggestsClientDelay(err); suggested && seconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(seconds))
	}
	return response
}

func encode(content any) []byte {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return body
}

// serve answers a call.
func (w *world) serve(c *call, fault fault) {
	w.trace("%s%s", c, fault)
	if c.ended.Err() != nil {
		return
	}
	switch fault {
	case refused:
		c.reply <- reply{response: failure(w.refusal())} //nolint:bodyclose // the client closes it
		return
	case unreachable:
		c.reply <- reply{err: errLost}
		return
	}
	response := w.handle(c) //nolint:bodyclose // the client closes it
	switch fault {
	case lost:
		c.reply <- reply{err: errLost}
	default:
		c.reply <- reply{response: response}
	}
}

// handle executes a call.
func (w *world) handle(c *call) *http.Response {
	if c.query.Get("watch") != "" {
		return w.watch(c)
	}
	var k kind
	for k = range kindCount {
		if k.String() == c.path[0] {
			break
		}
	}
	var o client.Object
	var err error
	key := types.NamespacedName{}
	if len(c.path) > 1 {
		key.Name = c.path[1]
	}
	switch {
	case c.method == http.MethodGet && key.Name == "":
		return w.list(c, k)
	case c.method == http.MethodGet:
		o, err = w.server.Get(k, key)
	case c.method == http.MethodDelete:
		err = w.server.Delete(c.agent.process, k, key, preconditions{})
	default:
		o, err = w.write(c, k, key)
	}
	if err != nil {
		w.trace("  %v", err)
		return failure(err)
	}
	if o == nil {
		return respond(http.StatusOK, encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}))
	}
	return respond(http.StatusOK, encode(typed(o)))
}

// list lists the reports or the NodePodProbe of the node of the agent.
func (w *world) list(c *call, k kind) *http.Response {
	if k == plans {
		all := v1alpha1.NodePodProbeList{TypeMeta: metav1.TypeMeta{Kind: "NodePodProbeList", APIVersion: v1alpha1.GroupVersion().String()}}
		all.ResourceVersion = strconv.FormatInt(w.server.Version, 10)
		if o, err := w.server.Get(plans, types.NamespacedName{Name: c.agent.name}); err == nil {
			all.Items = append(all.Items, *o.(*v1alpha1.NodePodProbe)) //nolint:forcetypeassert // of this kind
		}
		return respond(http.StatusOK, encode(all))
	}
	list := seamarkv1alpha1.ProbeReportList{TypeMeta: metav1.TypeMeta{Kind: "ProbeReportList", APIVersion: seamarkv1alpha1.GroupVersion().String()}}
	list.ResourceVersion = strconv.FormatInt(w.server.Version, 10)
	for _, o := range w.server.List(reports) {
		if report := o.(*seamarkv1alpha1.ProbeReport); report.NodeName == c.agent.name { //nolint:forcetypeassert // all are
			list.Items = append(list.Items, *report)
		}
	}
	return respond(http.StatusOK, encode(list))
}

// write creates, updates or patches an object of the agent.
func (w *world) write(c *call, k kind, key types.NamespacedName) (client.Object, error) {
	var report seamarkv1alpha1.ProbeReport
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	into := any(&report)
	if c.method == http.MethodPatch {
		into = &operations
	}
	if err := json.Unmarshal(c.body, into); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	switch c.method {
	case http.MethodPost:
		return w.server.Create(c.agent.process, k, &report)
	case http.MethodPut:
		return w.server.Update(c.agent.process, k, key, preconditions{Version: report.ResourceVersion}, func(o client.Object) error {
			o.SetOwnerReferences(report.OwnerReferences)
			o.(*seamarkv1alpha1.ProbeReport).Pods = report.Pods //nolint:forcetypeassert // of this kind
			return nil
		})
	}
	return w.server.Update(c.agent.process, k, key, preconditions{}, func(o client.Object) error {
		for _, operation := range operations {
			if err := operate(o, operation.Path, operation.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// operate executes an operation of a JSON patch of an agent.
func operate(o client.Object, path string, value []byte) error {
	switch path {
	case "/metadata/uid":
		if string(value) != strconv.Quote(string(o.GetUID())) {
			return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", plans.Resource(), o.GetName(), "test failed", 0, true)
		}
		return nil
	case "/metadata/ownerReferences":
		var owners []metav1.OwnerReference
		err := json.Unmarshal(value, &owners)
		o.SetOwnerReferences(owners)
		return err
	case "/pods":
		report := o.(*seamarkv1alpha1.ProbeReport) //nolint:forcetypeassert // of this kind
		report.Pods = nil
		return json.Unmarshal(value, &report.Pods)
	case "/status":
		plan := o.(*v1alpha1.NodePodProbe) //nolint:forcetypeassert // of this kind
		plan.Status = v1alpha1.NodePodProbeStatus{}
		return json.Unmarshal(value, &plan.Status)
	default:
		return apierrors.NewBadRequest("unexpected path " + path)
	}
}

// typed returns the object with its kind and version.
func typed(o client.Object) client.Object {
	o = clone(o)
	switch o := o.(type) {
	case *v1alpha1.NodePodProbe:
		o.TypeMeta = metav1.TypeMeta{Kind: "NodePodProbe", APIVersion: v1alpha1.GroupVersion().String()}
	case *seamarkv1alpha1.ProbePlan:
		o.TypeMeta = metav1.TypeMeta{Kind: "ProbePlan", APIVersion: seamarkv1alpha1.GroupVersion().String()}
	case *seamarkv1alpha1.ProbeReport:
		o.TypeMeta = metav1.TypeMeta{Kind: "ProbeReport", APIVersion: seamarkv1alpha1.GroupVersion().String()}
	}
	return o
}

// watch is a watch of the NodePodProbe of a node.
type watch struct {
	node *node
	// next is the index of the next event in the log.
	next   int
	out    chan []byte
	closed bool
}

// watch opens a watch, which begins with the object if the agent requests it.
func (w *world) watch(c *call) *http.Response {
	opened := &watch{node: c.agent, out: make(chan []byte, 10000)}
	log := w.server.Tables[plans].Log
	if c.query.Get("sendInitialEvents") == "true" {
		if o, err := w.server.Get(plans, types.NamespacedName{Name: c.agent.name}); err == nil {
			opened.send("ADDED", o)
		}
		opened.next = len(log)
		opened.send("BOOKMARK", &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.FormatInt(w.server.Version, 10), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	} else {
		from, _ := strconv.ParseInt(c.query.Get("resourceVersion"), 10, 64)
		for opened.next < len(log) && log[opened.next].Version <= from {
			opened.next++
		}
	}
	w.watches = append(w.watches, opened)
	response := respond(http.StatusOK, nil)
	response.Body, response.ContentLength = &stream{watch: opened, ended: c.ended, closed: make(chan struct{})}, -1
	return response
}

func (t *watch) send(kind string, o client.Object) {
	t.out <- encode(map[string]any{"type": kind, "object": typed(o)})
}

// deliver sends the next n events, and reports whether there were any.
func (w *world) deliver(t *watch, n int) bool {
	log, sent := w.server.Tables[plans].Log, false
	for ; n > 0 && t.next < len(log); t.next++ {
		e := log[t.next]
		if e.Key.Name != t.node.name {
			continue
		}
		n--
		sent = true
		switch {
		case e.After == nil:
			t.send("DELETED", e.Before)
		case e.Before == nil:
			t.send("ADDED", e.After)
		default:
			t.send("MODIFIED", e.After)
		}
	}
	return sent
}

// expire ends a watch because the API server does not have its next events any more.
func (t *watch) expire() {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	t.out <- encode(map[string]any{"type": "ERROR", "object": status})
	t.end()
}

// end ends a watch.
func (t *watch) end() {
	if !t.closed {
		t.closed = true
		close(t.out)
	}
}

// stream is the body of a watch.
type stream struct {
	watch *watch
	rest  []byte
	ended context.Context
	// closed is closed with the stream.
	once   sync.Once
	closed chan struct{}
}

// Read waits for an event.
func (s *stream) Read(into []byte) (int, error) {
	if len(s.rest) == 0 {
		select {
		case next, open := <-s.watch.out:
			if !open {
				return 0, io.EOF
			}
			s.rest = next
		case <-s.ended.Done():
			return 0, errDead
		case <-s.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(into, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close ends the reads.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
