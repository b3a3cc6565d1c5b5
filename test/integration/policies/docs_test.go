// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// securityDoc returns the lines of docs/security.md and the root of the module.
func securityDoc(t *testing.T) (lines []string, root string) {
	t.Helper()
	root, err := env.ModuleRoot()
	expect.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	expect.NoError(t, err)
	return strings.Split(string(text), "\n"), root
}

// TestDocumentedGrants compares the table of grants with the installed roles.
func TestDocumentedGrants(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, folder := range []string{"config/rbac", "config/serverless", "config/workloads", "config/cronjobs/rbac.yaml", "config/daemonsets/rbac.yaml", "config/broadcastjobs/rbac.yaml", "config/imagepulls/rbac.yaml", "config/sidecarsets/rbac.yaml", "config/sidecarsets/injector-rbac.yaml"} {
		objects := env.Manifests(t, []string{folder})
		for _, object := range objects {
			account, is := accountOf(object.GetName())
			if kind := object.GetKind(); !is || kind != "Role" && kind != "ClusterRole" {
				continue
			}
			role := &rbacv1.Role{}
			expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					name := strings.Join(append([]string{resource}, rule.ResourceNames...), " ")
					// Several roles may have the same resource: config/cronjobs creates what config/broadcastjobs serves.
					key, verbs := account+" `"+name+"`", rule.Verbs
					if earlier := want[key]; earlier != "" {
						known := strings.Split(earlier, ", ")
						verbs = append(known, slices.DeleteFunc(verbs, func(verb string) bool { return slices.Contains(known, verb) })...)
					}
					want[key] = strings.Join(verbs, ", ")
				}
			}
		}
	}
	lines, _ := securityDoc(t)
	start := slices.Index(lines, "## Grants")
	if start < 0 {
		t.Fatal("docs/security.md has no section Grants")
	}
	got := map[string]string{}
	for _, line := range lines[start+1:] {
		if strings.HasPrefix(line, "## ") {
			break
		}
		cells := strings.Split(line, " | ")
		if len(cells) == 4 && strings.HasPrefix(cells[1], "`") {
			got[strings.TrimPrefix(cells[0], "| ")+" "+cells[1]] = cells[2]
		}
	}
	expect.Equal(t, want, got, "grants")
}

// accountOf returns the name in the table for the program whose service account is bound to the
// role, or for the users of a role that nobody is bound to. Roles that are part of view, edit and
// admin are not in the table.
func accountOf(role string) (string, bool) {
	switch role {
	case "seamark-agent":
		return "agent", true
	case "seamark-manager", "seamark-webhook", "seamark-workloads-grants":
		return "manager", true
	case "seamark-workloads", "seamark-workloads-pods", "seamark-cronjobs", "seamark-daemonsets", "seamark-broadcastjobs", "seamark-imagepulls", "seamark-sidecarsets":
		return "workloads", true
	case "seamark-injector":
		return "injector", true
	case "seamark-view-states":
		return "viewer of states", true
	default:
		return "", false
	}
}

// TestDocumentedTestsExist checks that the tests in the document exist.
func TestDocumentedTestsExist(t *testing.T) {
	t.Parallel()
	lines, root := securityDoc(t)
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(strings.Join(lines, "\n"), -1)
	if len(named) == 0 {
		t.Fatal("docs/security.md refers to no test")
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	exists := map[string]bool{}
	for _, folder := range []string{"internal", "cmd", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range declared.FindAllSubmatch(text, -1) {
				exists[string(match[1])] = true
			}
			return err
		})
		expect.NoError(t, err)
	}
	for _, name := range named {
		if !exists[name] {
			t.Errorf("docs/security.md refers to %s, which does not exist", name)
		}
	}
}
