// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the objects that OpenKruise stores for the manifests in a folder, see README.md.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	"github.com/openkruise/kruise/apis/apps/defaults"
	"github.com/openkruise/kruise/apis/apps/v1alpha1"
	"github.com/openkruise/kruise/apis/apps/v1beta1"
	"github.com/openkruise/kruise/pkg/controller/cloneset/revision"
	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/controller/history"
	"sigs.k8s.io/yaml"
)

func main() {
	log.SetFlags(0)
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		must(add(scheme.Scheme))
	}
	collisions := new(int32)

	clones := &v1alpha1.CloneSet{}
	read("cloneset.yaml", clones)
	defaults.SetDefaultsCloneSet(clones, true)
	write("cloneset.json", clones)
	recorded, err := revision.NewRevisionControl().NewRevision(clones, 1, collisions)
	must(err)
	write("cloneset.revision.json", recorded)

	// The function that does this for a StatefulSet is not exported: it encodes the set, and keeps its
	// template with "$patch".
	stateful := &v1beta1.StatefulSet{}
	read("statefulset.yaml", stateful)
	defaults.SetDefaultsStatefulSet(stateful, true)
	write("statefulset.json", stateful)
	encoded, err := runtime.Encode(scheme.Codecs.LegacyCodec(v1beta1.SchemeGroupVersion), stateful)
	must(err)
	var set struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	must(json.Unmarshal(encoded, &set))
	set.Spec.Template["$patch"] = "replace"
	data, err := json.Marshal(set)
	must(err)
	kind := v1beta1.SchemeGroupVersion.WithKind("StatefulSet")
	recorded, err = history.NewControllerRevision(stateful, kind, stateful.Spec.Template.Labels, runtime.RawExtension{Raw: data}, 1, collisions)
	must(err)
	recorded.Annotations = stateful.Annotations
	write("statefulset.revision.json", recorded)
}

func read(name string, into any) {
	text, err := os.ReadFile(filepath.Join(os.Args[1], name))
	must(err)
	must(yaml.UnmarshalStrict(text, into))
}

// write writes a revision on one line: its data are compared byte by byte.
func write(name string, object any) {
	text, err := json.MarshalIndent(object, "", "  ")
	if _, is := object.(*apps.ControllerRevision); is {
		text, err = json.Marshal(object)
	}
	must(err)
	must(os.WriteFile(filepath.Join(os.Args[1], name), append(text, '\n'), 0o644))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
