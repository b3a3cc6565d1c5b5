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
	// Bodies is the size of all requests together, from their first byte to their answer, and of answers that are sent.
	Bodies int
	// Unfinished is the number of requests whose body is not complete, and PerSource that of one address. An API
	// server that sends 1,000 requests at once has nearly as many.
	Unfinished, PerSource int
	// ReadTimeout is the time for a body and for sending an answer, and Wait that until the request is answered: API servers wait 5 s.
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
// oldest first, and so does an answer that its client does not read: those of API servers take milliseconds.
type bodies struct {
	limits Limits

	mu   sync.Mutex
	size int
	// unfinished are *body by age, and sources has how many of each address.
	unfinished *list.List
	sources    map[string]int
	// sent are *body whose answers are being sent, by age.
	sent *list.List
	// clock counts turns.
	clock uint64
}

// body is that of one request.
type body struct {
	control *http.ResponseController
	source  string
	size    int
	// place is the one among the unfinished, and sending that among those whose answers are sent, or nil.
	place, sending *list.Element
	// turn is when it came to its list.
	turn uint64
	cut  bool
}

func newBodies(limits Limits) *bodies {
	return &bodies{limits: limits, unfinished: list.New(), sources: map[string]int{}, sent: list.New()}
}

// read returns the body of a request. The caller calls release when the request is answered.
func (b *bodies) read(w http.ResponseWriter, r *http.Request) (text []byte, one *body, err error) {
	if r.ContentLength > int64(b.limits.Body) {
		return nil, nil, errTooLarge
	}
	source, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		source = r.RemoteAddr
	}
	one = &body{control: http.NewResponseController(w), source: source}
	// Servers that tests record support no deadlines.
	_ = one.control.SetReadDeadline(time.Now().Add(b.limits.ReadTimeout))
	b.start(one)
	if text, err = b.fill(one, r); err != nil {
		b.release(one)
		return nil, nil, err
	}
	// The deadline would end the answer, too.
	_ = one.control.SetReadDeadline(time.Time{})
	return text, one, nil
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
	one.place, one.turn = b.unfinished.PushBack(one), b.tick()
	b.sources[one.source]++
}

// send notes that the body is no longer needed, and that an answer of the length is sent from now on. It returns an error
// if there is no room for it.
func (b *bodies) send(one *body, length int) error {
	b.mu.Lock()
	b.size -= one.size
	one.size = 0
	one.sending, one.turn = b.sent.PushBack(one), b.tick()
	b.mu.Unlock()
	// Servers that tests record support no deadlines.
	_ = one.control.SetWriteDeadline(time.Now().Add(b.limits.ReadTimeout))
	if !b.grow(one, length) {
		return errFull
	}
	return nil
}

// oldest returns the oldest of those that are not complete and are meant, or nil.
func (b *bodies) oldest(meant func(*body) bool) *body { return oldest(b.unfinished, meant) }

func oldest(all *list.List, meant func(*body) bool) *body {
	for place := all.Front(); place != nil; place = place.Next() {
		if each, _ := place.Value.(*body); meant(each) {
			return each
		}
	}
	return nil
}

func (b *bodies) tick() uint64 {
	b.clock++
	return b.clock
}

// cut ends the reading of a body, or the sending of an answer.
func (b *bodies) cut(one *body) {
	if one == nil {
		return
	}
	if one.sending == nil {
		_ = one.control.SetReadDeadline(time.Unix(1, 0))
	} else {
		_ = one.control.SetWriteDeadline(time.Unix(1, 0))
	}
	b.leave(one)
	b.size -= one.size
	one.size, one.cut = 0, true
}

// leave removes a body from those that are not complete, and from those whose answers are sent.
func (b *bodies) leave(one *body) {
	if one.sending != nil {
		b.sent.Remove(one.sending)
		one.sending = nil
	}
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
		large := func(each *body) bool { return each != one && each.size > 0 }
		other := b.oldest(large)
		if unread := oldest(b.sent, large); other == nil || unread != nil && unread.turn < other.turn {
			other = unread
		}
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
