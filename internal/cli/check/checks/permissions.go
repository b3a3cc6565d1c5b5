// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	yamlobject "sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/config"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// installation is the folder below config/ of the manager and the agent, and workloadsFolder that of seamark-workloads.
	installation, workloadsFolder = "default", "workloads"
)

// Permission is a permission that a program needs.
type Permission struct {
	// Account is the name of the ServiceAccount, in the namespace of Seamark.
	Account string
	// Attributes are what the account must be allowed to do.
	Attributes authorizationv1.ResourceAttributes
	// Folder is the folder below config/ that grants it, empty if that would disable other controllers.
	Folder string
}

// Access is the answer of the API server to whether an account has a permission.
type Access struct {
	Permission
	// Allowed is whether it has the permission.
	Allowed bool
}

// String returns the permission as text, such as "patch pods/status".
func (p Permission) String() string {
	a := p.Attributes
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Group != "" {
		resource += "." + a.Group
	}
	if a.Name != "" {
		resource += " " + a.Name
	}
	if a.Namespace != "" {
		resource += " in namespace " + a.Namespace
	}
	return a.Verb + " " + resource
}

// Required returns the permissions that the installed programs need, as the roles in config/ grant them.
func (f *Facts) Required() ([]Permission, error) {
	type grant struct{ account, folder, file string }
	grants := []grant{{managerName, installation, "rbac/manager.yaml"}, {agentName, installation, "rbac/agent.yaml"}}
	if f.Webhook.Value != nil {
		grants = append(grants, grant{managerName, "serverless", "serverless/rbac.yaml"})
	}
	// A folder of a kind enables that kind and those of config/workloads. None enables two further kinds.
	folder, enabled := workloadsFolder, f.kindsBesides(workloadsFolder)
	for _, kind := range enabled {
		if folder = kind.ConfigFolder; len(enabled) > 1 {
			folder = ""
		}
	}
	if f.hasWorkloads() {
		grants = append(grants, grant{workloadsName, folder, workloadsFolder + "/rbac.yaml"})
	}
	for _, kind := range enabled {
		grants = append(grants, grant{workloadsName, folder, kind.ConfigFolder + "/rbac.yaml"})
	}
	if f.hasInjector() {
		grants = append(grants, grant{injectorName, "sidecarsets", "sidecarsets/injector-rbac.yaml"})
	}
	var required []Permission
	for _, each := range grants {
		found, err := permissionsOf(each.account, config.Read(each.file), f.Namespace)
		if err != nil {
			return nil, fmt.Errorf("read the roles of %s: %w", each.account, err)
		}
		for i := range found {
			found[i].Folder = each.folder
		}
		required = append(required, found...)
	}
	return required, nil
}

// kindsBesides returns the enabled kinds that another folder than the given one installs.
func (f *Facts) kindsBesides(folder string) []kinds.Kind {
	enabled, _ := f.enabled()
	return slices.DeleteFunc(enabled, func(k kinds.Kind) bool { return k.ConfigFolder == folder })
}

// permissionsOf returns what the roles in the YAML documents grant, if they are bound to the
// account. Roles for users, and that of single namespaces, are labeled, and do not count.
func permissionsOf(account string, documents []byte, namespace string) ([]Permission, error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(documents)))
	var found []Permission
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split the documents: %w", err)
		}
		// A ClusterRole also has the fields of a Role.
		var role rbacv1.Role
		if err := yamlobject.Unmarshal(document, &role); err != nil {
			return nil, fmt.Errorf("decode a role: %w", err)
		}
		where := ""
		switch {
		case len(role.Labels) > 0:
			continue
		case role.Kind == "Role":
			where = namespace
		case role.Kind != "ClusterRole":
			continue
		}
		for _, rule := range role.Rules {
			found = append(found, expand(account, rule, where)...)
		}
	}
}

func expand(account string, rule rbacv1.PolicyRule, namespace string) []Permission {
	objects := rule.ResourceNames
	if len(objects) == 0 {
		objects = []string{""}
	}
	var found []Permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			name, subresource, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				for _, object := range objects {
					found = append(found, Permission{Account: account, Attributes: authorizationv1.ResourceAttributes{
						Group: group, Resource: name, Subresource: subresource, Verb: verb, Name: object,
						Namespace: namespaceOf(resource, object, namespace),
					}})
				}
			}
		}
	}
	return found
}

const kruiseNamespace = "kruise-system"

// namespaceOf returns the namespace of a permission. A ClusterRole allows to read the one lease of
// OpenKruise, which is in its own namespace.
func namespaceOf(resource, object, namespace string) string {
	if resource == "leases" && object == kruiseLease {
		return kruiseNamespace
	}
	return namespace
}

// permissions checks that the accounts have the permissions that their programs need.
func (f *Facts) permissions() []Result {
	const name = "permissions"
	if f.Access.Err != nil {
		return unreadable(name, f.Access.Err)
	}
	var accounts []string
	missing, folder, total := map[string][]string{}, map[string]string{}, map[string]int{}
	for _, a := range f.Access.Value {
		if total[a.Account]++; total[a.Account] == 1 {
			accounts = append(accounts, a.Account)
		}
		if !a.Allowed {
			missing[a.Account], folder[a.Account] = append(missing[a.Account], a.String()), a.Folder
		}
	}
	var results []Result
	for _, account := range accounts {
		check := name + "/" + account
		if lacks := missing[account]; len(lacks) > 0 {
			fix := "install the roles of this version: helm upgrade"
			if folder[account] != "" {
				fix += ", or kubectl apply --server-side -k config/" + folder[account]
			}
			results = append(results, failed(check, fix,
				"the account lacks %d of %d permissions: %s", len(lacks), total[account], text.List(lacks, maxNames))...)
			continue
		}
		results = append(results, ok(check, "the account has the %d permissions that it needs", total[account])...)
	}
	return results
}
