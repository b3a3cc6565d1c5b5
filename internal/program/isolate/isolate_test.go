// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package isolate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/isolate"
	"github.com/seamark-dev/seamark/test/expect"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, seamarkv1alpha1.AddToScheme} {
		expect.NoError(t, add(scheme))
	}
	return scheme
}

// kinds returns the custom resources with an empty object of each.
func kinds(t testing.TB) map[schema.GroupVersionKind]runtime.Object {
	t.Helper()
	found := map[schema.GroupVersionKind]runtime.Object{}
	for kind := range newScheme(t).AllKnownTypes() {
		if isolate.IsCustom(kind.Group) && newScheme(t).Recognizes(kind.GroupVersion().WithKind(kind.Kind+"List")) {
			object, err := newScheme(t).New(kind)
			expect.NoError(t, err)
			found[kind] = object
		}
	}
	if len(found) < 11 {
		t.Fatalf("%d kinds, want at least 11", len(found))
	}
	return found
}

// place is a field of a type, and put returns a document with only this field.
type place struct {
	path string
	put  func(value any) any
}

func (p place) below(path string, wrap func(any) any) place {
	return place{path: strings.TrimPrefix(p.path+path, "."), put: func(value any) any { return p.put(wrap(value)) }}
}

// places calls do for each field below a type, except for those of a type within itself.
func places(of reflect.Type, at place, within []reflect.Type, do func(place)) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	decoder := reflect.TypeFor[json.Unmarshaler]()
	if of.Implements(decoder) || reflect.PointerTo(of).Implements(decoder) {
		return
	}
	switch of.Kind() {
	case reflect.Struct:
		if len(slices.DeleteFunc(slices.Clone(within), func(t reflect.Type) bool { return t != of })) > 0 {
			return
		}
		fields(of, at, append(slices.Clone(within), of), do)
	case reflect.Map:
		next := at.below(`["a.b/c"]`, func(value any) any { return map[string]any{"a.b/c": value} })
		do(next)
		places(of.Elem(), next, within, do)
	case reflect.Slice:
		if of.Elem().Kind() != reflect.Uint8 {
			next := at.below("[0]", func(value any) any { return []any{value} })
			do(next)
			places(of.Elem(), next, within, do)
		}
	default:
	}
}

func fields(of reflect.Type, at place, within []reflect.Type, do func(place)) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct:
			fields(field.Type, at, within, do)
		case name == "-" || name == "" || name == "metadata" && len(within) == 1 || len(within) == 1 && (name == "kind" || name == "apiVersion"):
		default:
			next := at.below("."+name, func(value any) any { return map[string]any{name: value} })
			do(next)
			places(field.Type, next, within, do)
		}
	}
}

// TestEveryFieldWithEveryWrongType puts a value of each JSON type in the place of each field of each kind. What the
// decoder refuses is isolated, with the path of the field.
func TestEveryFieldWithEveryWrongType(t *testing.T) {
	t.Parallel()
	for kind, object := range kinds(t) {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel()
			of := reflect.TypeOf(object).Elem()
			found, refused := 0, 0
			places(of, place{put: func(value any) any { return value }}, nil, func(p place) {
				found++
				for _, wrong := range []any{"\u202e<text>", json.Number("8080"), json.Number("1.5"), true, []any{"a"}, map[string]any{"a": "b"}} {
					document, _ := p.put(wrong).(map[string]any)
					document["metadata"] = map[string]any{"name": "a", "annotations": map[string]any{"k": "v"}}
					if check(t, document, of, p.path) {
						refused++
					}
				}
			})
			if refused < found {
				t.Errorf("the decoder refuses %d values of %d fields", refused, found)
			}
			t.Logf("%d fields, %d wrong values", found, refused)
		})
	}
}

// check compares the isolation with the decoder, and reports whether the decoder refuses the document.
func check(t *testing.T, document map[string]any, of reflect.Type, path string) bool {
	t.Helper()
	encoded, err := json.Marshal(document)
	expect.NoError(t, err)
	refused := kjson.UnmarshalCaseSensitivePreserveInts(encoded, reflect.New(of).Interface()) != nil
	into, _ := reflect.New(of).Interface().(runtime.Object)
	expect.NoErrorf(t, isolate.Object(encoded, into), "%s", path)
	isolated, _ := into.(metav1.Object)
	record := isolate.Of(isolated)
	switch {
	case refused != (record != nil):
		t.Fatalf("%s: refused %t, but the record is %v", path, refused, record)
	case record == nil:
		return false
	case !strings.HasPrefix(record.Faults[0].Path, path):
		t.Fatalf("the path is %s, want %s", record.Faults[0].Path, path)
	case strings.Contains(record.Error(), "\u202e"):
		t.Fatalf("%s: the value is not quoted: %s", path, record.Error())
	case isolated.GetName() != "a" || isolated.GetAnnotations()["k"] != "v" || len(isolate.Stored(isolated)) != 1:
		t.Fatalf("%s: the isolated object has the metadata %v", path, isolated)
	}
	return true
}

// TestRecords shows what users read.
func TestRecords(t *testing.T) {
	t.Parallel()
	const repair = ". Correct it with kubectl edit or kubectl replace: server-side apply does not work on this object."
	cases := map[string]struct {
		spec, want string
		missing    []string
	}{
		"annotation": {
			`{"replicas":2,"template":{"metadata":{"annotations":{"prometheus.io/port":8080}}}}`,
			`spec.template.metadata.annotations["prometheus.io/port"]: 8080 is a number, want a string`, []string{"spec.template"},
		},
		"variable and command": {
			`{"template":{"spec":{"containers":[{"command":"sh","env":[{"name":"PORT","value":8080}]}]}}}`,
			`spec.template.spec.containers[0].command: "sh" is a string, want a list; spec.template.spec.containers[0].env[0].value: 8080 is a number, want a string`,
			[]string{"spec.template"},
		},
		"quantity": {
			`{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"one"}}}]}}}`,
			`spec.template.spec.containers[0].resources.limits["cpu"]: "one" is a string, want a quantity, such as 500m or "1Gi"`, []string{"spec.template"},
		},
		"no object": {`"text"`, `spec: "text" is a string, want an object`, []string{"spec"}},
		"many": {
			`{"replicas":"a","minReadySeconds":"b","revisionHistoryLimit":"c","lifecycle":[]}`,
			`spec.replicas: "a" is a string, want an integer of 32 bits; spec.revisionHistoryLimit: "c" is a string, want an integer of 32 bits; ` +
				`spec.minReadySeconds: "b" is a string, want an integer of 32 bits; and 1 more`,
			[]string{"spec.replicas", "spec.revisionHistoryLimit", "spec.minReadySeconds", "spec.lifecycle"},
		},
		"hostile": {
			`{"template":{"metadata":{"labels":{"` + strings.Repeat("k", 500) + `":["\u001b[31m"]}}}}`,
			`spec.template.metadata.labels["` + strings.Repeat("k", 80) + `..."]: is a list, want a string`, []string{"spec.template"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &v1alpha1.CloneSet{}
			expect.NoError(t, isolate.Object([]byte(`{"metadata":{"name":"a"},"spec":`+tc.spec+`,"status":{"replicas":3}}`), set))
			record := isolate.Of(set)
			if record == nil {
				t.Fatal("not isolated")
			}
			expect.Equal(t, "message", tc.want+repair, record.Error())
			slices.Sort(tc.missing)
			slices.Sort(record.Missing)
			expect.Equal(t, "missing fields", tc.missing, record.Missing)
			expect.Equal(t, "status.replicas", 3, set.Status.Replicas)
		})
	}
}

// body returns the JSON of a list of CloneSets, of which the bad ones cannot be decoded.
func body(t testing.TB, sets int, bad ...int) []byte {
	t.Helper()
	environment := []any{}
	for i := range 12 {
		environment = append(environment, map[string]any{"name": fmt.Sprint("VARIABLE_", i), "value": "a value of some length"})
	}
	spec := map[string]any{"replicas": 3, "selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}, "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "a"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.example.com/main:1", "env": environment}}},
	}}
	document := map[string]any{"kind": "CloneSet", "apiVersion": "apps.kruise.io/v1alpha1", "spec": spec, "status": map[string]any{"replicas": 3}}
	var items bytes.Buffer
	for i := range sets {
		document["metadata"] = map[string]any{"name": fmt.Sprint("a", i), "annotations": map[string]any{"seamark.dev/undecodable": "{}"}}
		spec["minReadySeconds"] = 1
		if slices.Contains(bad, i) {
			spec["minReadySeconds"] = "one"
		}
		encoded, err := json.Marshal(document)
		expect.NoError(t, err)
		if i > 0 {
			items.WriteByte(',')
		}
		items.Write(encoded)
	}
	return fmt.Appendf(
		nil, `{"kind":"CloneSetList","apiVersion":"apps.kruise.io/v1alpha1","metadata":{"resourceVersion":"7","continue":"c"},"items":[%s]}`, items.Bytes(),
	)
}

func decoderOf(t testing.TB) runtime.Decoder {
	t.Helper()
	codecs := isolate.Serializer(newScheme(t))
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return codecs.DecoderToVersion(info.Serializer, nil)
}

// TestOneOfAList decodes a list, and each of its objects as in a watch.
func TestOneOfAList(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string][]int{"none": nil, "one": {1}, "all": {0, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := &v1alpha1.CloneSetList{}
			if _, _, err := decoderOf(t).Decode(body(t, 3, bad...), nil, list); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 3 || list.ResourceVersion != "7" || list.Continue != "c" {
				t.Fatalf("list %+v", list.ListMeta)
			}
			for i := range list.Items {
				isolated := isolate.Of(&list.Items[i]) != nil
				if isolated != slices.Contains(bad, i) || list.Items[i].Name != fmt.Sprint("a", i) || isolated != (list.Items[i].Spec.MinReadySeconds == 0) {
					t.Errorf("object %d: isolated %t, minReadySeconds %d", i, isolated, list.Items[i].Spec.MinReadySeconds)
				}
			}
		})
	}
	single := []byte(`{"kind":"CloneSet","apiVersion":"apps.kruise.io/v1alpha1","metadata":{"name":"a"},"spec":{"template":"text"}}`)
	object, _, err := decoderOf(t).Decode(single, nil, nil)
	if set, ok := object.(*v1alpha1.CloneSet); err != nil || !ok || isolate.Of(set) == nil {
		t.Errorf("watched object %v, error %v", object, err)
	}
	if _, _, err := decoderOf(t).Decode(
		[]byte(`{"kind":"CloneSetList","apiVersion":"apps.kruise.io/v1alpha1","items":[`), nil, &v1alpha1.CloneSetList{},
	); err == nil {
		t.Error("no error about half a list")
	}
}

// BenchmarkList compares a list of 1,000 CloneSets with the decoder of client-go.
func BenchmarkList(b *testing.B) {
	codecs := isolate.Serializer(newScheme(b))
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	good, bad := body(b, 1000), body(b, 1000, 500)
	for _, each := range []struct {
		name    string
		decoder runtime.Decoder
		body    []byte
	}{{"client-go", info.Serializer, good}, {"isolating", decoderOf(b), good}, {"isolating-one", decoderOf(b), bad}} {
		b.Run(each.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := each.decoder.Decode(each.body, nil, &v1alpha1.CloneSetList{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
