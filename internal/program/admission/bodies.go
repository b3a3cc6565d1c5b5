// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits bound what requests take. The zero value of a field means its default.
type Limits struct {
	// Body is the size of a request in bytes. It contains a pod, and the API server accepts 3 MiB.
	Body int
	// Bodies is the size of all requests together, from their first byte to the answer.
	Bodies int
	// Unfinished is the number of requests whose body is not complete, and PerSource that of one address. An API
	// server that sends 1,000 requests at once has nearly as many.
	Unfinished, PerSource int
	// ReadTimeout is the time for a body, and Wait that until the request is answered: API servers wait 5 s.
	ReadTimeout, Wait time.Duration
	// Answers is an estimate of the memory of all requests that are being answered, in bytes.
	Answers int64
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Body: cmp.Or(l.Body, 4<<20), Bodies: cmp.Or(l.Bodies, 32<<20), Unfinished: cmp.Or(l.Unfinished, 2048),
		PerSource: cmp.Or(l.PerSource, 1024), ReadTimeout: cmp.Or(l.ReadTimeout, 5*time.Second), Wait: cmp.Or(l.Wait, 10*time.Second),
		Answers: cmp.Or(l.Answers, 64<<20),
	}
}

// firstRead is the size of the buffer of a body whose length is not known.
const firstRead = 4 << 10

var (
	errTooLarge = errors.New("the request is too large")
	errFull     = errors.New("there are too many requests, try again")
)

// bodies reads the bodies of requests. A body that is not complete gives way to others at each limit, the
// oldest first: bodies of API servers take milliseconds.
type bodies struct {
	limits Limits

	mu   sync.Mutex
	size int
	// unfinished are *body by age, and sources has how many of each address.
	unfinished *list.List
	sources    map[string]int
}

// body is that of one request.
type body struct {
	control *http.ResponseController
	source  string
	size    int
	// place is the one among the unfinished, or nil.
	place *list.Element
	cut   bool
}

func newBodies(limits Limits) *bodies {
	return &bodies{limits: limits, unfinished: list.New(), sources: map[string]int{}}
}

// read returns the body of a request. The caller calls release when it no longer needs the body.
func (b *bodies) read(w http.ResponseWriter, r *http.Request) (text []byte, release func(), err error) {
	if r.ContentLength > int64(b.limits.Body) {
		return nil, nil, errTooLarge
	}
	source, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		source = r.RemoteAddr
	}
	one := &body{control: http.NewResponseController(w), source: source}
	// Servers that tests record support no deadlines.
	_ = one.control.SetReadDeadline(time.Now().Add(b.limits.ReadTimeout))
	b.start(one)
	release = func() { b.release(one) }
	if text, err = b.fill(one, r); err != nil {
		release()
		return nil, nil, err
	}
	// The deadline would end the answer, too.
	_ = one.control.SetReadDeadline(time.Time{})
	return text, release, nil
}

// fill reads the body, and asks for room before it takes any.
func (b *bodies) fill(one *body, r *http.Request) ([]byte, error) {
	var text []byte
	for {
		if len(text) == cap(text) {
			room := min(max(2*cap(text), firstRead), b.limits.Body+1)
			if len(text) > b.limits.Body {
				return nil, errTooLarge
			}
			if !b.grow(one, room-cap(text)) {
				return nil, errFull
			}
			text = append(make([]byte, 0, room), text...)
		}
		n, err := r.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case errors.Is(err, io.EOF):
			return text, b.finish(one, len(text))
		case err != nil:
			return nil, cmp.Or(b.finish(one, len(text)), fmt.Errorf("read the request: %w", err))
		}
	}
}

// start adds a body that is not complete.
func (b *bodies) start(one *body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sources[one.source] >= b.limits.PerSource {
		b.cut(b.oldest(func(each *body) bool { return each.source == one.source }))
	} else if b.unfinished.Len() >= b.limits.Unfinished {
		b.cut(b.oldest(func(*body) bool { return true }))
	}
	one.place = b.unfinished.PushBack(one)
	b.sources[one.source]++
}

// oldest returns the oldest of those that are not complete and are meant, or nil.
func (b *bodies) oldest(meant func(*body) bool) *body {
	for place := b.unfinished.Front(); place != nil; place = place.Next() {
		if each, _ := place.Value.(*body); meant(each) {
			return each
		}
	}
	return nil
}

// cut ends the reading of a body.
func (b *bodies) cut(one *body) {
	if one == nil {
		return
	}
	b.leave(one)
	b.size -= one.size
	one.size, one.cut = 0, true
	_ = one.control.SetReadDeadline(time.Unix(1, 0))
}

// leave removes a body from those that are not complete.
func (b *bodies) leave(one *body) {
	if one.place == nil {
		return
	}
	b.unfinished.Remove(one.place)
	one.place = nil
	if b.sources[one.source]--; b.sources[one.source] == 0 {
		delete(b.sources, one.source)
	}
}

// grow reports whether the body may have that many bytes more.
func (b *bodies) grow(one *body, more int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.size+more > b.limits.Bodies && !one.cut {
		other := b.oldest(func(each *body) bool { return each != one && each.size > 0 })
		if other == nil {
			return false
		}
		b.cut(other)
	}
	if one.cut {
		return false
	}
	b.size += more
	one.size += more
	return true
}

// finish removes the body, which has a length, from those that are not complete. It returns an error if the body
// had to give way.
func (b *bodies) finish(one *body, length int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(one)
	switch {
	case one.cut:
		return errFull
	case length > b.limits.Body:
		return errTooLarge
	}
	return nil
}

// release forgets a body.
func (b *bodies) release(one *body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(one)
	b.size -= one.size
	one.size = 0
}
