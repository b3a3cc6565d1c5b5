// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // the configurations of plugins have no other name
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	pod     = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
	plugin  = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\ntarget: {kind: Pod}\n"
	refused = "is on another machine"
)

// network counts downloads: requests to a server on this machine, and runs of git.
type network struct {
	url      string
	requests atomic.Int32
	gitRuns  string
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n, bin := &network{}, t.TempDir()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.requests.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
	})
	n.url, n.gitRuns = server.URL, filepath.Join(bin, "runs")
	git := "#!/bin/sh\necho \"$@\" >> " + n.gitRuns + "\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(git), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	return n
}

// used reports whether anything was downloaded since the last call.
func (n *network) used() bool {
	_, err := os.Stat(n.gitRuns)
	_ = os.Remove(n.gitRuns)
	return n.requests.Swap(0) > 0 || err == nil
}

func write(t *testing.T, content map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range content {
		path := filepath.Join(folder, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		var err error
		if target, isLink := strings.CutPrefix(text, "link:"); isLink {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		expect.NoError(t, err)
	}
	return folder
}

// Every field of a kustomization and of the configuration of a plugin that kustomize downloads from is
// refused: each gets an address, and what kustomize does with it says whether it must be.
func TestNoFieldDownloads(t *testing.T) {
	n := newNetwork(t)
	var downloads int
	check := func(t *testing.T, name string, content map[string]string) {
		t.Helper()
		folder := write(t, content)
		if _, _ = files.Build(folder, true); !n.used() {
			return
		}
		downloads++
		_, err := files.Build(folder, false)
		expect.ErrorWith(t, name, refused, err)
		if n.used() {
			t.Errorf("%s: a download was tried", name)
		}
	}
	target := &types.Selector{}
	target.Kind, target.Name = "Pod", "web"
	valid := types.Kustomization{
		Resources:          []string{"pod.yaml"},
		ConfigMapGenerator: []types.ConfigMapArgs{{GeneratorArgs: types.GeneratorArgs{Name: "c"}}},
		SecretGenerator:    []types.SecretArgs{{GeneratorArgs: types.GeneratorArgs{Name: "s"}}},
		PatchesJson6902:    []types.Patch{{Target: target, Path: "patch.yaml"}}, //nolint:staticcheck // kustomize still reads it
	}
	local := map[string]string{"pod.yaml": pod, "patch.yaml": `[{"op": "add", "path": "/metadata/labels", "value": {}}]`}
	for field, k := range withAddress(t, valid, n.url+"/x.yaml") {
		local["kustomization.yaml"] = k
		check(t, field, local)
	}
	for _, repository := range []string{"git::" + n.url + "/org/repo", "user@127.0.0.1:org/repo"} {
		for _, list := range []string{"resources", "bases", "components", "generators", "transformers", "validators"} {
			local["kustomization.yaml"] = list + ": ['" + repository + "']\n"
			check(t, list+": "+repository, local)
		}
	}
	for kind, config := range plugins(t, target) {
		for field, fields := range withAddress(t, config, n.url+"/x.yaml") {
			text := "apiVersion: builtin\nkind: " + kind + "\nmetadata: {name: x}\n" + strings.ReplaceAll(fields, "metadata: {}\n", "")
			// The list does not matter: kustomize reads the configuration before it looks at its kind.
			inline := "resources: [pod.yaml]\ngenerators:\n- |-\n  " + strings.ReplaceAll(text, "\n", "\n  ")
			check(t, kind+field, map[string]string{"pod.yaml": pod, "kustomization.yaml": inline})
		}
	}
	if downloads < 35 {
		t.Errorf("%d fields with which kustomize downloads, want the test to find more", downloads)
	}
}

// plugins are valid configurations of the plugins that are part of kustomize.
func plugins(t *testing.T, target *types.Selector) map[string]any {
	t.Helper()
	known := map[string]any{
		"AnnotationsTransformer":         builtins.AnnotationsTransformerPlugin{},
		"ConfigMapGenerator":             builtins.ConfigMapGeneratorPlugin{ConfigMapArgs: types.ConfigMapArgs{GeneratorArgs: types.GeneratorArgs{Name: "c"}}},
		"HashTransformer":                builtins.HashTransformerPlugin{},
		"HelmChartInflationGenerator":    builtins.HelmChartInflationGeneratorPlugin{},
		"IAMPolicyGenerator":             builtins.IAMPolicyGeneratorPlugin{},
		"ImageTagTransformer":            builtins.ImageTagTransformerPlugin{},
		"LabelTransformer":               builtins.LabelTransformerPlugin{},
		"NamespaceTransformer":           builtins.NamespaceTransformerPlugin{},
		"PatchJson6902Transformer":       builtins.PatchJson6902TransformerPlugin{Target: target},
		"PatchStrategicMergeTransformer": builtins.PatchStrategicMergeTransformerPlugin{},
		"PatchTransformer":               builtins.PatchTransformerPlugin{Target: target},
		"PrefixSuffixTransformer":        builtins.PrefixTransformerPlugin{},
		"PrefixTransformer":              builtins.PrefixTransformerPlugin{},
		"SuffixTransformer":              builtins.SuffixTransformerPlugin{},
		"ReplacementTransformer":         builtins.ReplacementTransformerPlugin{},
		"ReplicaCountTransformer":        builtins.ReplicaCountTransformerPlugin{},
		"SecretGenerator":                builtins.SecretGeneratorPlugin{SecretArgs: types.SecretArgs{GeneratorArgs: types.GeneratorArgs{Name: "s"}}},
		"ValueAddTransformer":            builtins.ValueAddTransformerPlugin{Value: "x"},
	}
	for _, name := range krusty.GetBuiltinPluginNames() {
		if _, is := known[name]; !is {
			t.Errorf("plugin %s is not tested", name)
		}
	}
	return known
}

// withAddress returns YAML of the value by the names of its texts, each with the address in this text.
func withAddress(t *testing.T, value any, address string) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := reflect.New(reflect.TypeOf(value)).Elem()
	var visit func(v reflect.Value, name string, depth int)
	visit = func(v reflect.Value, name string, depth int) {
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		defer v.Set(before)
		switch v.Kind() {
		case reflect.String:
			v.SetString(address)
			content, err := yaml.Marshal(root.Interface())
			expect.NoError(t, err)
			found[name] = string(content)
		case reflect.Struct:
			for i := range v.NumField() {
				if field := v.Type().Field(i); field.IsExported() && depth < 8 {
					visit(v.Field(i), name+"."+field.Name, depth+1)
				}
			}
		case reflect.Pointer:
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			if v.Elem().Kind() == reflect.Struct {
				visit(v.Elem(), name, depth+1)
			}
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				return
			}
			// The items of others stay as they are.
			items := reflect.MakeSlice(v.Type(), v.Len(), v.Len()+1)
			reflect.Copy(items, v)
			if v.Len() == 0 {
				items = reflect.Append(items, reflect.Zero(v.Type().Elem()))
			}
			v.Set(items)
			visit(v.Index(v.Len()-1), name+"[]", depth+1)
		case reflect.Map:
			if v.Type() == reflect.TypeFor[map[string]string]() {
				for _, key := range []string{"path", "x"} {
					v.Set(reflect.ValueOf(map[string]string{key: address}))
					content, err := yaml.Marshal(root.Interface())
					expect.NoError(t, err)
					found[name+"."+key] = string(content)
				}
			}
		default:
		}
	}
	root.Set(reflect.ValueOf(value))
	visit(root, "", 0)
	return found
}

// Files and folders of kustomizations lead to another machine in more ways than by a field.
func TestNoFileDownloads(t *testing.T) {
	n := newNetwork(t)
	remote := plugin + "path: '" + n.url + "/x.yaml'\n"
	escaped := plugin + `path: "\x68ttp` + strings.TrimPrefix(n.url, "http") + "/x.yaml\"\n"
	composed := map[string]string{
		"pod.yaml": pod, "kustomization.yaml": "resources: [pod.yaml]\ntransformers: [plugins]\n",
		"plugins/config.yaml": plugin + "path: x" + strings.TrimPrefix(n.url, "http") + "/x.yaml\n",
		"plugins/kustomization.yaml": "resources: [config.yaml]\npatches:\n" +
			"- {target: {kind: PatchTransformer}, patch: '[{op: replace, path: /path, value: \"" + n.url + "/x.yaml\"}]'}\n",
	}
	with := func(kustomization, config string) map[string]string {
		return map[string]string{"pod.yaml": pod, "kustomization.yaml": kustomization, "config.yaml": config}
	}
	for name, test := range map[string]struct {
		content map[string]string
		want    string
	}{
		"generator": {
			with("generators: [config.yaml]\n", strings.Replace(remote, "PatchTransformer", "ConfigMapGenerator", 1)+"files: ['a="+n.url+"']\n"), refused,
		},
		"transformer": {with("resources: [pod.yaml]\ntransformers: [config.yaml]\n", remote), refused},
		"transformer in a list": {
			with(
				"resources: [pod.yaml]\ntransformers: [config.yaml]\n", "apiVersion: v1\nkind: List\nitems:\n- "+strings.ReplaceAll(remote, "\n", "\n  "),
			), refused,
		},
		"transformer with escapes": {with("resources: [pod.yaml]\ntransformers: [./config.yaml]\n", escaped), refused},
		"second transformer": {
			with("resources: [pod.yaml]\ntransformers: [config.yaml]\n", plugin+"patch: '{}'\n---\n"+strings.Replace(remote, "name: x", "name: y", 1)), refused,
		},
		"validator": {with("resources: [pod.yaml]\nvalidators: [config.yaml]\n", remote), refused},
		"linked transformer": {map[string]string{
			"pod.yaml": pod, "kustomization.yaml": "resources: [pod.yaml]\ntransformers: [link.yaml]\n", "link.yaml": "link:a/config.yaml", "a/config.yaml": remote,
		}, refused},
		"linked kustomization": {map[string]string{
			"pod.yaml": pod, "kustomization.yaml": "link:a/other.yaml", "a/other.yaml": "resources: [pod.yaml, '" + n.url + "/x.yaml']\n",
		}, refused},
		"linked kustomization with a transformer": {map[string]string{
			"pod.yaml": pod, "kustomization.yaml": "link:a/other.yaml", "a/other.yaml": "resources: [pod.yaml]\ntransformers: [config.yaml]\n", "config.yaml": remote,
		}, refused},
		"transformers in a folder": {map[string]string{
			"pod.yaml": pod, "kustomization.yaml": "resources: [pod.yaml]\ntransformers: [a]\n", "a/kustomization.yaml": "resources: [b]\n",
			"a/b/kustomization.yaml": "resources: [config.yaml]\n", "a/b/config.yaml": remote,
		}, refused},
		"address that a kustomization composes": {composed, "must have only resources"},
		"letter with a lower case of its own":   {with("resources: [pod.yaml, 'gİthub.com/org/repo']\n", ""), refused},
	} {
		t.Run(name, func(t *testing.T) {
			folder := write(t, test.content)
			_, err := build(folder)
			expect.ErrorWith(t, "build", test.want, err)
			if n.used() {
				t.Error("a download was tried")
			}
		})
	}
}

func build(folder string) (string, error) {
	content, err := files.Build(folder, false)
	return string(content), err
}

// Kustomizations that stay on this machine are built: bases may be anywhere, files below the folder of
// their kustomization.
func TestLocalKustomizations(t *testing.T) {
	n := newNetwork(t)
	folder := write(t, map[string]string{
		"pod.yaml":           pod,
		"kustomization.yaml": "resources: [pod.yaml]\ncommonAnnotations: {docs: 'https://example.com'}\n",
		"app/top/kustomization.yaml": "resources: [../../base]\ntransformers: [../../plugins, patch.yaml]\ngenerators: [config.yaml]\n" +
			"components: [../component]\nconfigMapGenerator: [{name: d, literals: ['URL=https://example.com']}]\n",
		"app/top/config.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: c}\nliterals: ['URL=https://example.com']\n",
		"app/top/patch.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\ntarget: {kind: Pod}\n" +
			"patch: |-\n  - op: add\n    path: /metadata/annotations\n    value: {args: \"--issuer=https://example.com/docs\"}\n",
		"app/component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -z\n",
		"base/pod.yaml":                    pod,
		"base/kustomization.yaml":          "resources: [pod.yaml]\n",
		"plugins/prefix.yaml":              "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: my-\nfieldSpecs: [{path: metadata/name}]\n",
		"plugins/kustomization.yaml":       "resources: [prefix.yaml]\n",
		"outside/kustomization.yaml":       "resources: [../pod.yaml]\n",
	})
	content, err := build(filepath.Join(folder, "app/top"))
	if err != nil || strings.Count(content, "URL: https://example.com") != 2 || !strings.Contains(content, "name: my-web-z") ||
		!strings.Contains(content, "https://example.com/docs") {
		t.Errorf("error %v, content:\n%s", err, content)
	}
	if _, err := build(folder); err != nil {
		t.Error(err)
	}
	if _, err := build(filepath.Join(folder, "outside")); err == nil || !strings.Contains(err.Error(), "is not in or below") {
		t.Errorf("error %v for a file above the folder of the kustomization", err)
	}
	// A relative folder that has the name of a host.
	t.Chdir(write(t, map[string]string{"github.com/org/repo/pod.yaml": pod, "github.com/org/repo/kustomization.yaml": "resources: [pod.yaml]\n"}))
	inputs, err := (&files.Loader{}).Load(t.Context(), []string{"."})
	if err != nil || len(inputs) != 1 || !strings.Contains(string(inputs[0].Content), "name: web") {
		t.Errorf("error %v, inputs %v", err, inputs)
	}
	if n.used() {
		t.Error("a download was tried")
	}
}
