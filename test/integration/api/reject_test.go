// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// rejection is a change that makes the valid marker invalid for one reason.
type rejection struct {
	edits []edit
	// field is the path of the field in the response.
	field string
	// message holds parts of the message in the response, which describes what is allowed.
	message []string
}

func one(path string, value any, message ...string) rejection {
	return rejection{edits: []edit{{path, value}}, field: path, message: message}
}

// at sets the field of the response if it is not the edited field.
func (r rejection) at(field string) rejection {
	r.field = field
	return r
}

func (r rejection) with(e edit) rejection {
	r.edits = append(r.edits, e)
	return r
}

const (
	labels     = "spec.probes[0].markerPolicy[0].labels"
	annotation = "spec.probes[0].markerPolicy[0].annotations"
)

func rejections() map[string]rejection {
	all := map[string]rejection{}
	for _, some := range []map[string]rejection{
		selectorRejections(), probeRejections(), handlerRejections(), networkRejections(), markRejections(),
	} {
		maps.Copy(all, some)
	}
	return all
}

func selectorRejections() map[string]rejection {
	const (
		selector   = "spec.selector"
		expression = "spec.selector.matchExpressions[0]"
		holdOne    = "must contain at least one label in matchLabels or one requirement in matchExpressions"
		oneValue   = "must contain at least one value for the operators In and NotIn, and no value for Exists and DoesNotExist"
		name       = "DNS subdomain and '/', then 1 to 63 letters"
	)
	long := strings.Repeat("a", 64)
	return map[string]rejection{
		"no spec":                         one("spec", remove{}, "Required value"),
		"no selector":                     one(selector, remove{}, "Required value"),
		"selector null":                   one(selector, nil, "Required value"),
		"selector empty":                  one(selector, map[string]any{}, holdOne),
		"selector with empty parts":       one(selector, map[string]any{"matchLabels": map[string]any{}, "matchExpressions": []any{}}, holdOne),
		"selector label key":              one(selector+".matchLabels", map[string]any{"a b": "c"}, "keys", name),
		"selector label key too long":     one(selector+".matchLabels", map[string]any{long: "c"}, "keys", name),
		"selector label value":            one(selector+".matchLabels", map[string]any{"a": "-"}, "must be a label value").at(selector + ".matchLabels[a]"),
		"selector label value too long":   one(selector+".matchLabels.a", long, "63"),
		"expression without key":          one(expression+".key", remove{}, "Required value"),
		"expression key":                  one(expression+".key", "/a", "must be a qualified name", name),
		"expression key empty":            one(expression+".key", "", "must be a qualified name"),
		"expression key with long prefix": one(expression+".key", strings.Repeat("a.", 127)+"a/b", "must be a qualified name"),
		"expression without operator":     one(expression+".operator", remove{}, "Required value"),
		"expression operator":             one(expression+".operator", "Equals", `"In", "NotIn", "Exists", "DoesNotExist"`),
		"In without values":               one(expression+".values", remove{}, oneValue),
		"In with empty values":            one(expression+".values", []any{}, oneValue),
		"NotIn without values":            one(expression, map[string]any{"key": "a", "operator": "NotIn"}, oneValue).at(expression + ".values"),
		"Exists with values":              one(expression+".operator", "Exists", oneValue).at(expression + ".values"),
		"DoesNotExist with values":        one(expression+".operator", "DoesNotExist", oneValue).at(expression + ".values"),
		"expression value":                one(expression+".values[1]", "a/b", "must be a label value"),
		"expression value too long":       one(expression+".values[1]", long, "63"),
		"too many labels":                 one(selector+".matchLabels", keys(65), "64"),
		"too many expressions":            one(selector+".matchExpressions", repeat(map[string]any{"key": "a", "operator": "Exists"}, 17), "16"),
		"too many values":                 one(expression+".values", repeat("a", 129), "128"),
	}
}

func probeRejections() map[string]rejection {
	const (
		probe      = "spec.probes[0]"
		shape      = "must consist of letters, digits, '-', '_', '.' and '/'"
		nativeType = "must not be a condition type that Kubernetes sets"
	)
	all := map[string]rejection{
		"no probes":                    one("spec.probes", remove{}, "Required value"),
		"probes empty":                 one("spec.probes", []any{}, "at least 1"),
		"too many probes":              one("spec.probes", manyProbes(33), "32"),
		"probe without name":           one(probe+".name", remove{}, "Required value"),
		"probe name empty":             one(probe+".name", "", shape),
		"probe name with #":            one(probe+".name", "a#b", shape),
		"probe name with space":        one(probe+".name", "is idle", shape),
		"probe name ends with -":       one(probe+".name", "idle-", shape),
		"probe name too long":          one(probe+".name", strings.Repeat("a", 254), "253"),
		"probe name twice":             one("spec.probes[1].name", "idle", "Duplicate value").at("spec.probes[1]"),
		"probe without containerName":  one(probe+".containerName", remove{}, "Required value"),
		"containerName empty":          one(probe+".containerName", "", "must be a container name"),
		"containerName in upper case":  one(probe+".containerName", "Server", "must be a container name"),
		"containerName too long":       one(probe+".containerName", strings.Repeat("a", 64), "63"),
		"probe without probe":          one(probe+".probe", remove{}, "Required value"),
		"condition type":               one(probe+".podConditionType", "game.io/", "must be a qualified name", "such as game.io/idle"),
		"condition type with space":    one(probe+".podConditionType", "Is Idle", "must be a qualified name"),
		"condition type too long":      one(probe+".podConditionType", strings.Repeat("a", 318), "317"),
		"condition type name too long": one(probe+".podConditionType", strings.Repeat("a", 64), "must be a qualified name"),
		"condition type twice":         one("spec.probes[2].podConditionType", "game.io/idle", "podConditionType", "only once in a marker").at("spec.probes"),
		"neither condition nor policy": one(
			"spec.probes[1].podConditionType", remove{}, "must set podConditionType, markerPolicy or both",
		).at("spec.probes[1]"),
		"condition and policy empty": {
			edits: []edit{{"spec.probes[1].podConditionType", ""}, {"spec.probes[1].markerPolicy", []any{}}},
			field: "spec.probes[1]", message: []string{"must set podConditionType, markerPolicy or both"},
		},
	}
	for _, native := range v1alpha1.NativePodConditionTypes() {
		condition := string(native)
		all["probe named "+condition] = one(probe+".name", condition, nativeType)
		all["condition type "+condition] = one(probe+".podConditionType", condition, nativeType)
	}
	return all
}

func handlerRejections() map[string]rejection {
	const (
		probe   = "spec.probes[0].probe"
		handler = "must have exactly one of exec, httpGet, tcpSocket and grpc"
		program = "must contain the program to run and its arguments"
	)
	all := map[string]rejection{
		"no handler":         one(probe, map[string]any{"periodSeconds": 5}, handler),
		"probe empty":        one(probe, map[string]any{}, handler),
		"two handlers":       one(probe+".tcpSocket", map[string]any{"port": 1}, handler).at(probe),
		"exec and grpc":      one(probe+".grpc", map[string]any{"port": 1}, handler).at(probe),
		"exec without args":  one(probe+".exec", map[string]any{}, program).at(probe + ".exec.command"),
		"exec command empty": one(probe+".exec.command", []any{}, program),
		"exec program empty": one(probe+".exec.command", []any{"", "a"}, program),
		"exec command text":  one(probe+".exec.command", "cat /tmp/idle", "array"),
		"argument too long":  one(probe+".exec.command[0]", strings.Repeat("a", 16385), "16384"),
		"command too long":   one(probe+".exec.command", []any{"sh", "-c", strings.Repeat("a", 16381)}, "at most 16384 characters in total"),
		"too many arguments": one(probe+".exec.command", repeat("a", 129), "128"),
	}
	for _, field := range []string{
		"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold",
	} {
		all["negative "+field] = one(probe+"."+field, -1, "greater than or equal to 0")
	}
	all["terminationGracePeriodSeconds"] = one(probe+".terminationGracePeriodSeconds", 0, "must not be set")
	all["stale too soon"] = one("spec.probes[0].staleAfterSeconds", 9, "greater than or equal to 10")
	all["startup policy"] = one("spec.probes[0].startupPolicy", "Wait", "supported values: \"Ignore\", \"WaitForStarted\"")
	all["timeout too long"] = one(probe+".timeoutSeconds", 301, "less than or equal to 300")
	for _, field := range []string{"periodMilliseconds", "timeoutMilliseconds"} {
		all[field+" too short"] = one("spec.probes[2].probe."+field, 99, "greater than or equal to 100")
		all[field+" too short for exec"] = one(probe+"."+field, 499, "must be 500 or more for exec: each run starts a process in the container")
	}
	all["timeoutMilliseconds too long"] = one(probe+".timeoutMilliseconds", 300001, "less than or equal to 300000")
	all["period is text"] = one(probe+".periodSeconds", "10s", "integer")
	return all
}

func networkRejections() map[string]rejection {
	const (
		http = "spec.probes[1].probe.httpGet"
		tcp  = "spec.probes[2].probe.tcpSocket"
		grpc = "spec.probes[3].probe.grpc"
		host = "must not be set: the probe connects to the pod's IP address"
	)
	all := map[string]rejection{
		"httpGet host":           one(http+".host", "example.com", host, "Host header"),
		"tcpSocket host":         one(tcp+".host", "127.0.0.1", host),
		"httpGet without port":   one(http+".port", remove{}, "Required value"),
		"tcpSocket without port": one(tcp+".port", remove{}, "Required value"),
		"grpc without port":      one(grpc+".port", remove{}, "Required value"),
		"grpc port 0":            one(grpc+".port", 0, "greater than or equal to 1"),
		"grpc port 65536":        one(grpc+".port", 65536, "less than or equal to 65535"),
		"grpc named port":        one(grpc+".port", "grpc", "integer"),
		"scheme":                 one(http+".scheme", "FTP", `"HTTP", "HTTPS"`),
		"scheme in lower case":   one(http+".scheme", "https", `"HTTP", "HTTPS"`),
		"protocol":               one(http+".protocol", "HTTP3", `"HTTP1", "HTTP2"`),
		"HTTP2 with HTTPS": {
			edits: []edit{{http + ".protocol", "HTTP2"}, {http + ".scheme", "HTTPS"}}, field: http + ".protocol",
			message: []string{"must not be HTTP2 with the scheme HTTPS"},
		},
		"grpc mode":                  one(grpc+".mode", "mTLS", `"Plaintext", "TLS"`),
		"header without name":        one(http+".httpHeaders[0].name", remove{}, "Required value"),
		"header without value":       one(http+".httpHeaders[0].value", remove{}, "Required value"),
		"header name empty":          one(http+".httpHeaders[0].name", "", "must be a header name"),
		"header name with colon":     one(http+".httpHeaders[0].name", "Host:", "must be a header name"),
		"header name too long":       one(http+".httpHeaders[0].name", strings.Repeat("a", 257), "256"),
		"header value of two lines":  one(http+".httpHeaders[0].value", "a\nb: c", "must be a single line"),
		"header value with a return": one(http+".httpHeaders[0].value", "a\rb", "must be a single line"),
		"header value too long":      one(http+".httpHeaders[0].value", strings.Repeat("a", 8193), "8192"),
		"header values too long": one(
			http+".httpHeaders", repeat(map[string]any{"name": "a", "value": strings.Repeat("b", 8192)}, 3), "at most 16384 characters in total",
		),
		"path too long":         one(http+".path", "/"+strings.Repeat("a", 4096), "4096"),
		"grpc service too long": one(grpc+".service", strings.Repeat("a", 513), "512"),
		"too many headers":      one(http+".httpHeaders", repeat(map[string]any{"name": "a", "value": "b"}, 17), "16"),
	}
	const name = "should match '^([a-z0-9]+-)*"
	for bad, want := range map[any]string{
		0: "greater than or equal to 1", -1: "greater than or equal to 1", 65536: "less than or equal to 65535",
		"8080": name, "": name, "HTTP": name, "a_b": name, "-a": name, "a-": name, "a--b": name,
		"abcdefghijklmnop": "may not be more than 15",
	} {
		all[fmt.Sprintf("httpGet port %#v", bad)] = one(http+".port", bad, want)
		all[fmt.Sprintf("tcpSocket port %#v", bad)] = one(tcp+".port", bad, want)
	}
	return all
}

// sources returns n keys with values from messages, and numbers n different values.
func sources(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = map[string]any{"key": fmt.Sprintf("from-%d", i)}
	}
	return all
}

func numbers(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

func markRejections() map[string]rejection {
	const (
		policy = "spec.probes[0].markerPolicy"
		name   = "keys must be qualified names"
		from   = policy + "[0].labelsFrom"
	)
	long := strings.Repeat("a", 64)
	return map[string]rejection{
		"policy without state":       one(policy+"[0].state", remove{}, "Required value"),
		"policy state Pending":       one(policy+"[0].state", "Pending", `"Succeeded", "Failed", "Unknown"`),
		"policy state in lower case": one(policy+"[0].state", "unknown", `"Succeeded", "Failed", "Unknown"`),
		"policy state twice":         one(policy+"[1].state", "Succeeded", "Duplicate value").at(policy + "[1]"),
		"label key":                  one(labels, map[string]any{"a b": "c"}, name),
		"label key empty":            one(labels, map[string]any{"": "c"}, name),
		"label key too long":         one(labels, map[string]any{long: "c"}, name),
		"label key prefix":           one(labels, map[string]any{"Game.io/idle": "c"}, name),
		"label key prefix too long":  one(labels, map[string]any{strings.Repeat("a.", 127) + "a/b": "c"}, name),
		"label value":                one(labels, map[string]any{"a": "b c"}, "must be a label value").at(labels + "[a]"),
		"label value too long":       one(labels+".a", long, "63"),
		"label value is a boolean":   one(labels+".a", true, "string"),
		"too many labels to set":     one(labels, keys(33), "32"),
		"annotation key":             one(annotation, map[string]any{"a b": "c"}, name),
		"annotation key empty":       one(annotation, map[string]any{"": "c"}, name),
		"annotation key too long":    one(annotation, map[string]any{long: "c"}, name),
		"annotation value too long":  one(annotation+".a", strings.Repeat("a", 16385), "16384"),
		"too many annotations":       one(annotation, keys(33), "32"),
		"key of labels and labelsFrom": one(
			from, []any{map[string]any{"key": "a"}}, "must not have a key of labels",
		).with(edit{labels, map[string]any{"a": "b"}}),
		"key of annotations twice": one(policy+"[0].annotationsFrom", []any{map[string]any{"key": "a"}}, "must not have a key of annotations").
			with(edit{annotation, map[string]any{"a": "b"}}),
		"labelsFrom key":       one(from, []any{map[string]any{"key": "a b"}}, "should match").at(from + "[0].key"),
		"labelsFrom key twice": one(from, []any{map[string]any{"key": "a"}, map[string]any{"key": "a"}}, "Duplicate value").at(from + "[1]"),
		"allowed label value": one(
			from, []any{map[string]any{"key": "a", "allowedValues": []any{"b c"}}}, "should match",
		).at(from + "[0].allowedValues[0]"),
		"allowed value twice": one(
			from, []any{map[string]any{"key": "a", "allowedValues": []any{"b", "b"}}}, "Duplicate value",
		).at(from + "[0].allowedValues[1]"),
		"too many allowed values":  one(from, []any{map[string]any{"key": "a", "allowedValues": numbers(33)}}, "32").at(from + "[0].allowedValues"),
		"jsonPath in braces":       one(from, []any{map[string]any{"key": "a", "jsonPath": "{.a}"}}, "should match").at(from + "[0].jsonPath"),
		"jsonPath with all fields": one(from, []any{map[string]any{"key": "a", "jsonPath": "..a"}}, "should match").at(from + "[0].jsonPath"),
		"jsonPath with a union":    one(from, []any{map[string]any{"key": "a", "jsonPath": "[0,0]"}}, "should match").at(from + "[0].jsonPath"),
		"too many keys from messages": one(
			from, sources(9), "at most 16 keys together",
		).with(edit{policy + "[0].annotationsFrom", sources(8)}).at(policy + "[0]"),
		"labelsFrom key in matchLabels": one(from, []any{map[string]any{"key": "own"}}, "a key of spec.selector.matchLabels").
			with(edit{"spec.selector.matchLabels", map[string]any{"app": "game", "own": "1"}}).at("spec.probes"),
		"labelsFrom key in matchExpressions": one(from, []any{map[string]any{"key": "own"}}, "a key of spec.selector.matchExpressions").
			with(edit{"spec.selector.matchExpressions[0].key", "own"}).at("spec.probes"),
		"exclusive Unknown": one(
			policy+"[1]", map[string]any{
				"state": "Unknown", "labels": map[string]any{"a": "b"}, "exclusive": map[string]any{},
			}, "must not be set for the state Unknown",
		).
			at(policy + "[1].exclusive"),
		"exclusive values from messages": one(
			from, []any{map[string]any{"key": "b"}}, "together with labelsFrom or annotationsFrom",
		).with(edit{policy + "[0].exclusive", map[string]any{}}).
			at(policy + "[0].exclusive"),
		"exclusive without keys": one(
			policy, []any{map[string]any{"state": "Succeeded", "exclusive": map[string]any{}}}, "requires labels or annotations",
		).at(policy + "[0].exclusive"),
		"group label is a mark": one(
			policy, []any{map[string]any{
				"state": "Succeeded", "labels": map[string]any{"a": "b"}, "exclusive": map[string]any{"perLabel": "a"},
			}}, "must not be a key of labels",
		).
			at(policy + "[0].exclusive.perLabel"),
		"group label": one(
			policy+"[0].exclusive", map[string]any{"perLabel": "a b"}, "should match",
		).at(policy + "[0].exclusive.perLabel"),
		"no path of the term": one(
			policy+"[0].exclusive", map[string]any{"termFrom": map[string]any{"jsonPath": ""}}, "should match",
		).at(policy + "[0].exclusive.termFrom.jsonPath"),
		"annotation values too long together": one(annotation, manyLong(9), "131072").at("spec.probes"),
		"label key in matchLabels": one("spec.selector.matchLabels", map[string]any{"app": "game", "own": "1"},
			`key "own" of spec.selector.matchLabels`).with(edit{labels, map[string]any{"own": "1"}}).at("spec.probes"),
		"label key in matchExpressions": one("spec.selector.matchExpressions[0].key", "own",
			`key "own" of spec.selector.matchExpressions`).with(edit{labels, map[string]any{"own": "1"}}).at("spec.probes"),
	}
}

// manyLong returns n values of the maximum length.
func manyLong(n int) map[string]any {
	all := map[string]any{}
	for i := range n {
		all[fmt.Sprintf("a%d", i)] = strings.Repeat("v", 16384)
	}
	return all
}

func TestInvalidMarkersAreRejected(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	expect.NoErrorf(t, create(t.Context(), marker(t, namespace)), "the unchanged marker is rejected")
	for name, test := range rejections() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := create(t.Context(), marker(t, namespace, test.edits...))
			got, err := causes(err)
			expect.NoError(t, err)
			if len(got) != 1 {
				t.Fatalf("the response has %d causes, want one: %v", len(got), got)
			}
			expect.Equal(t, "the response has field", test.field, got[0].Field)
			for _, words := range test.message {
				if !strings.Contains(got[0].Message, words) {
					t.Errorf("message %q, want it to contain %q", got[0].Message, words)
				}
			}
		})
	}
}

func TestStrictValidationRejectsUnknownFields(t *testing.T) {
	t.Parallel()
	err := create(t.Context(), marker(t, server.Namespace(t), edit{"spec.probes[0].probe.exec.comand", []any{"a"}}))
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.probes[0].probe.exec.comand"`) {
		t.Errorf("error %v, want one that names the unknown field (%s)", err, metav1.FieldValidationStrict)
	}
}

// repeat returns n times the value.
func repeat(value any, n int) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = value
	}
	return values
}
