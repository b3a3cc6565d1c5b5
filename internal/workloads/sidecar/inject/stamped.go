// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Stamped is which revision of a set a pod has. It is empty if the annotations do not say it.
type Stamped struct {
	// Revision is the name of the revision, Hash the hash of the containers, and At when the pod got it.
	Revision string      `json:"controllerRevision"`
	Hash     string      `json:"hash"`
	At       metav1.Time `json:"updateTimestamp"`
}

// Of returns which revision of the set the pod has.
func Of(pod *corev1.Pod, set string) Stamped {
	return stamped(pod.Annotations[v1alpha1.SidecarSetHashKey], set)
}

// WithoutImage returns the hash of the containers of the set without their images.
func WithoutImage(pod *corev1.Pod, set string) string {
	return stamped(pod.Annotations[v1alpha1.SidecarSetHashWithoutImageKey], set).Hash
}

func stamped(text, set string) Stamped {
	if found, ok := read(text, set); ok {
		return found
	}
	var all map[string]Stamped
	if json.Unmarshal([]byte(text), &all) != nil {
		return Stamped{}
	}
	return all[set]
}

// read reads the text as it is written by Stamp, and by OpenKruise, much faster than as any JSON: each step of an update asks
// all pods of a set. It reports false for a text with anything else.
func read(text, set string) (Stamped, bool) {
	found, r := Stamped{}, reader{rest: text}
	var before string
	for r.take("{"); ; r.take(",") {
		name := r.text()
		// Keys are sorted, so that each exists once.
		if r.take(":"); r.failed || before >= name {
			return Stamped{}, false
		}
		entry := r.entry()
		if name == set {
			found = entry
		}
		if before = name; r.rest == "}" {
			return found, !r.failed
		}
	}
}

// reader reads a text from its beginning to its end.
type reader struct {
	rest   string
	failed bool
}

// take reads the token.
func (r *reader) take(token string) {
	rest, found := strings.CutPrefix(r.rest, token)
	r.rest, r.failed = rest, r.failed || !found
}

// has reads the token if it is next.
func (r *reader) has(token string) bool {
	rest, found := strings.CutPrefix(r.rest, token)
	r.rest = rest
	return found
}

// text reads a string of printable ASCII without escapes.
func (r *reader) text() string {
	r.take(`"`)
	for i := range len(r.rest) {
		switch c := r.rest[i]; {
		case c == '"':
			read := r.rest[:i]
			r.rest = r.rest[i+1:]
			return read
		case c == '\\' || c < ' ' || c > '~':
			r.failed = true
			return ""
		}
	}
	r.failed = true
	return ""
}

// entry reads what the annotation says about one set.
func (r *reader) entry() Stamped {
	var s Stamped
	r.take(`{"updateTimestamp":`)
	at, err := time.Parse(time.RFC3339, r.text())
	r.failed = r.failed || err != nil
	s.At = metav1.NewTime(at.Local())
	r.take(`,"hash":`)
	s.Hash = r.text()
	r.take(`,"sidecarSetName":`)
	r.text()
	r.take(`,"sidecarList":`)
	if !r.has("null") && !r.has("[]") {
		for r.take("["); !r.failed; r.take(",") {
			if r.text(); r.has("]") {
				break
			}
		}
	}
	if r.has(`,"controllerRevision":`) {
		s.Revision = r.text()
	}
	r.take("}")
	return s
}
