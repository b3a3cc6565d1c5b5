// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extract extracts the values of labels and annotations from the message of a probe. It is
// pure. The agent uses it to report a changed value at once, and the manager to mark the pod.
//
// Messages are the output of containers. A message never leads to an invalid label or annotation: if
// the value is not valid, the functions return a Refusal, and the pod does not get the key.
package extract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// MaxAnnotationBytes is the maximum length of the value of an annotation. The first line of a longer
// message may be truncated, but not to fewer bytes.
const MaxAnnotationBytes = 256

// Cut ends the message of a probe with values that is truncated because the messages of the pod
// exceed their budget. No label value, number or JSON text ends with it, so a truncated value has no
// effect.
const Cut = "…"

// maxQuoted is the maximum number of bytes of a value in a Refusal.
const maxQuoted = 48

// Reason is why a message has no value.
type Reason string

// The reasons.
const (
	// Missing means that the message is empty, or that its JSON has nothing at the path.
	Missing Reason = "Missing"
	// NotJSON means that the message is not a JSON object or array.
	NotJSON Reason = "NotJSON"
	// Truncated means that the message was too long, and that the value may be incomplete.
	Truncated Reason = "Truncated"
	// NotScalar means that the value is null, an object or an array.
	NotScalar Reason = "NotScalar"
	// NotAllowed means that the value is not one of the allowed values.
	NotAllowed Reason = "NotAllowed"
	// Invalid means that Kubernetes does not accept the value.
	Invalid Reason = "Invalid"
)

// Refusal is why a key is not set.
type Refusal struct {
	// Reason is the type of the refusal.
	Reason Reason
	// Detail describes it with the value, which is shortened and quoted, in one line.
	Detail string
}

// Error returns the detail.
func (r *Refusal) Error() string { return r.Detail }

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// Label returns the value of a label in the message, or why there is none.
func Label(message string, from *v1alpha1.ValueSource) (string, *Refusal) {
	found, refusal := textAt(message, from.JSONPath, from.AllowedValues)
	if refusal != nil {
		return "", refusal
	}
	if errs := validation.IsValidLabelValue(found); len(errs) > 0 {
		return "", refuse(
			Invalid, "%s is not a label value: at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit", quote(found),
		)
	}
	return found, nil
}

// Annotation returns the value of an annotation in the message, or why there is none.
func Annotation(message string, from *v1alpha1.ValueSource) (string, *Refusal) {
	found, refusal := textAt(message, from.JSONPath, from.AllowedValues)
	switch {
	case refusal != nil:
		return "", refusal
	case len(found) > MaxAnnotationBytes:
		return "", refuse(Invalid, "%s has %d bytes: must have at most %d", quote(found), len(found), MaxAnnotationBytes)
	case strings.HasSuffix(found, Cut):
		return "", refuse(Truncated, "%s is truncated: the messages of the pod are too long together", quote(found))
	case from.Key == corev1.PodDeletionCost && !IsDeletionCost(found):
		return "", refuse(Invalid, "%s is not an integer from -2147483648 to 2147483647", quote(found))
	}
	return found, nil
}

// Integer returns the integer at the path of the message, or why there is none.
func Integer(message, path string) (int64, *Refusal) {
	found, refusal := valueAt(message, path)
	if refusal != nil {
		return 0, refusal
	}
	term, err := strconv.ParseInt(found, 10, 64)
	if err != nil {
		return 0, refuse(Invalid, "%s is not an integer of at most 64 bits", quote(found))
	}
	return term, nil
}

// IsDeletionCost reports whether the API server accepts the value as a deletion cost.
func IsDeletionCost(text string) bool {
	cost, err := strconv.ParseInt(text, 10, 32)
	return err == nil && strconv.FormatInt(cost, 10) == text
}

// SameValues reports whether two messages have the same values in the state, apart from those for which
// any value is allowed.
func SameValues(watched []v1alpha1.WatchedValue, state v1alpha1.ProbeState, a, b string) bool {
	return a == b || !slices.ContainsFunc(watched, func(w v1alpha1.WatchedValue) bool {
		if w.State != state || len(w.AllowedValues) == 0 {
			return false
		}
		before, missed := textAt(a, w.JSONPath, w.AllowedValues)
		after, misses := textAt(b, w.JSONPath, w.AllowedValues)
		return before != after || (missed == nil) != (misses == nil)
	})
}

// Watched returns which values of the messages of a probe mark the pod. The agent of the node watches
// them.
func Watched(policies []v1alpha1.ProbeMarkerPolicy) []v1alpha1.WatchedValue {
	var watched []v1alpha1.WatchedValue
	for i := range policies {
		policy := &policies[i]
		for _, from := range slices.Concat(policy.LabelsFrom, policy.AnnotationsFrom) {
			watched = append(watched, v1alpha1.WatchedValue{State: policy.State, JSONPath: from.JSONPath, AllowedValues: from.AllowedValues})
		}
	}
	return watched
}

// textAt returns the value at the path.
func textAt(message, path string, allowed []string) (string, *Refusal) {
	found, refusal := firstLine(message)
	if path != "" {
		found, refusal = valueAt(message, path)
	}
	if refusal == nil && len(allowed) > 0 && !slices.Contains(allowed, found) {
		return "", refuse(NotAllowed, "%s is not one of the allowed values", quote(found))
	}
	return found, refusal
}

func firstLine(message string) (string, *Refusal) {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", refuse(Missing, "the probe printed nothing")
	}
	return line, nil
}

// valueAt returns the value at the path of the JSON with which the message begins. What follows, such as
// standard error, is ignored. If the message is truncated, values that end before have effect.
func valueAt(message, path string) (string, *Refusal) {
	message = strings.TrimSpace(message)
	if !strings.HasPrefix(message, "{") && !strings.HasPrefix(message, "[") {
		return "", refuse(NotJSON, "%s is not a JSON object or array", quote(message))
	}
	missing := refuse(Missing, "the JSON has no value at %s", quote(path))
	var raw json.RawMessage
	err := json.NewDecoder(strings.NewReader(message)).Decode(&raw)
	if errors.Is(err, io.ErrUnexpectedEOF) || err != nil && strings.HasSuffix(message, Cut) {
		raw, err = completed(strings.TrimSuffix(message, Cut)), nil
		missing = refuse(
			Truncated, "the JSON is incomplete, and ends before %s: a message has at most 1024 bytes, and less if the pod has many probes", quote(path),
		)
	}
	if err != nil {
		return "", refuse(NotJSON, "%s is not JSON", quote(message))
	}
	var data any
	if err := utiljson.Unmarshal(raw, &data); err != nil {
		return "", refuse(NotJSON, "%s is not JSON", quote(message))
	}
	parser := jsonpath.New("value")
	if err := parser.Parse("{" + escaped(path) + "}"); err != nil {
		return "", refuse(Missing, "the path %s is invalid", quote(path))
	}
	results, err := parser.FindResults(data)
	if err != nil || len(results) != 1 || len(results[0]) != 1 {
		return "", missing
	}
	if !results[0][0].IsValid() || !results[0][0].CanInterface() {
		return "", refuse(NotScalar, "the value at %s is null", quote(path))
	}
	return scalar(results[0][0].Interface(), path)
}

// completed returns truncated JSON without the value at its end, which may be incomplete, and with the
// missing brackets.
func completed(truncated string) []byte {
	decoder := json.NewDecoder(strings.NewReader(truncated))
	var open []byte // The brackets that close what is open at the end.
	end, afterName := 0, false
	for {
		token, err := decoder.Token()
		offset := int(decoder.InputOffset())
		// A number ends where something else begins.
		if _, isNumber := token.(float64); err != nil || isNumber && offset == len(truncated) {
			slices.Reverse(open)
			return append([]byte(truncated[:end]), open...)
		}
		switch delimiter, _ := token.(json.Delim); delimiter {
		case '{', '[':
			open = append(open, byte(delimiter)+2) // In ASCII, it follows two places later.
		case '}', ']':
			open = open[:len(open)-1]
		default:
			if isName := open[len(open)-1] == '}' && !afterName; isName {
				afterName = true
				continue
			}
		}
		afterName, end = false, offset
	}
}

// escaped returns the path with escapes for the dots in quotes, which would separate fields.
func escaped(path string) string {
	var b strings.Builder
	quoted := false
	for _, r := range path {
		if r == '\'' {
			quoted = !quoted
		}
		if quoted && r == '.' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func scalar(found any, path string) (string, *Refusal) {
	switch v := found.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	default:
		return "", refuse(NotScalar, "the value at %s is not a string, a number, true or false", quote(path))
	}
}

// quote returns the text shortened, in quotes and with escapes for all but printable ASCII.
func quote(s string) string {
	if short := bytes.ToValidUTF8([]byte(s[:min(len(s), maxQuoted)]), nil); len(short) < len(s) {
		return strconv.QuoteToASCII(string(short)) + "..."
	}
	return strconv.QuoteToASCII(s)
}
