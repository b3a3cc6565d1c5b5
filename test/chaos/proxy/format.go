// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/watch"
)

// newCodecs returns the formats of the API server, with a scheme that has only the types of a proxy's
// own responses.
func newCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	return serializer.NewCodecFactory(scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
}

// format is how a watch is written.
type format struct {
	codecs serializer.CodecFactory
	info   runtime.SerializerInfo
}

// formatOf returns the format of a watch with the content type, and false if it has none that is known.
func formatOf(codecs serializer.CodecFactory, contentType string) (format, bool) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return format{}, false
	}
	if mediaType == runtime.ContentTypeCBORSequence {
		mediaType = runtime.ContentTypeCBOR
	}
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	return format{codecs: codecs, info: info}, ok && info.StreamSerializer != nil
}

// selfDescribed is the tag with which the API server begins each event in CBOR. Readers drop it.
const selfDescribed = "\xd9\xd9\xf7"

// frame returns an event as it is in the stream, with what separates it from the next.
func (f format) frame(event []byte) ([]byte, error) {
	var out bytes.Buffer
	if f.info.MediaType == runtime.ContentTypeCBOR && !bytes.HasPrefix(event, []byte(selfDescribed)) {
		out.WriteString(selfDescribed)
	}
	if _, err := f.info.StreamSerializer.NewFrameWriter(&out).Write(event); err != nil {
		return nil, fmt.Errorf("write an event of a watch: %w", err)
	}
	if f.info.MediaType == runtime.ContentTypeJSON {
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// expired returns the event with which the API server ends a watch whose version is too old.
func (f format) expired() ([]byte, error) {
	status := expired().Status()
	object, err := runtime.Encode(f.codecs.EncoderForVersion(f.info.Serializer, metav1.Unversioned), &status)
	if err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	event := metav1.WatchEvent{Type: string(watch.Error), Object: runtime.RawExtension{Raw: object}}
	text, err := runtime.Encode(f.codecs.EncoderForVersion(f.info.StreamSerializer.Serializer, metav1.Unversioned), &event)
	if err != nil {
		return nil, fmt.Errorf("encode an event of a watch: %w", err)
	}
	if f.info.MediaType == runtime.ContentTypeJSON {
		text = bytes.TrimSpace(text)
	}
	return f.frame(text)
}

// expired returns the API server's error for a version that is too old.
func expired() *apierrors.StatusError {
	return apierrors.NewResourceExpired("too old resource version: 1 (2)")
}

// maxEvent is the size of the largest event of a watch, in bytes. etcd has no larger objects.
const maxEvent = 8 << 20

var errTooLarge = errors.New("event of a watch is too large")

// events reads the events of a watch.
type events struct {
	format format
	body   limited
	reader io.ReadCloser
	buffer []byte
}

func newEvents(f format, body io.ReadCloser) *events {
	e := &events{format: f, body: limited{ReadCloser: body}, buffer: make([]byte, 4<<10)}
	e.reader = f.info.StreamSerializer.NewFrameReader(&e.body)
	return e
}

// next returns the next event as it is in the stream.
func (e *events) next() ([]byte, error) {
	e.body.left = maxEvent
	size := 0
	for {
		n, err := e.reader.Read(e.buffer[size:])
		size += n
		switch {
		case err == nil:
			return e.format.frame(e.buffer[:size])
		case !errors.Is(err, io.ErrShortBuffer):
			return nil, err
		case len(e.buffer) >= maxEvent:
			return nil, errTooLarge
		}
		if size == len(e.buffer) {
			e.buffer = append(e.buffer, make([]byte, len(e.buffer))...)
		}
	}
}

// limited is the body of a watch, of which an event may read only a part.
type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.ReadCloser.Read(p)
	l.left -= n
	return n, err //nolint:wrapcheck // io.EOF
}
