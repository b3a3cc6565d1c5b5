// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	yamlobject "sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/config/broadcastjobs"
	"github.com/seamark-dev/seamark/config/cronjobs"
	"github.com/seamark-dev/seamark/config/daemonsets"
	"github.com/seamark-dev/seamark/config/imagepulls"
	"github.com/seamark-dev/seamark/config/rbac"
	"github.com/seamark-dev/seamark/config/serverless"
	"github.com/seamark-dev/seamark/config/sidecarsets"
	"github.com/seamark-dev/seamark/config/workloads"
)

// Permission is a permission that a program needs.
type Permission struct {
	// Account is the name of the ServiceAccount, in the namespace of Seamark.
	Account string
	// Attributes are what the account must be allowed to do.
	Attributes authorizationv1.ResourceAttributes
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

// Required returns the permissions that the installed programs need, as config/rbac, config/workloads,
// config/cronjobs, config/daemonsets, config/broadcastjobs, config/imagepulls, config/sidecarsets and config/serverless
// grant them. It returns those of seamark-workloads, of the injectors and of the webhook only if they are installed, and
// those for AdvancedCronJobs, DaemonSets, BroadcastJobs and ImagePullJobs only if their controllers are enabled.
func (f *Facts) Required() ([]Permission, error) {
	accounts := []struct {
		name  string
		roles []byte
		used  bool
	}{
		{managerName, rbac.Manager(), true},
		{managerName, serverless.Roles(), f.Webhook.Value != nil},
		{agentName, rbac.Agent(), true},
		{workloadsName, workloads.Roles(), f.hasWorkloads()},
		{workloadsName, cronjobs.Roles(), f.hasCronJobs()},
		{workloadsName, daemonsets.Roles(), f.hasDaemonSets()},
		{workloadsName, broadcastjobs.Roles(), f.hasBroadcastJobs()},
		{workloadsName, imagepulls.Roles(), f.hasImagePulls()},
		{workloadsName, sidecarsets.Roles(), f.hasWorkloads() && f.hasInjector()},
		{injectorName, sidecarsets.Injector(), f.hasInjector()},
	}
	var required []Permission
	for _, account := range accounts {
		if !account.used {
			continue
		}
		found, err := permissionsOf(account.name, account.roles, f.Namespace)
		if err != nil {
			return nil, fmt.Errorf("read the roles of %s: %w", account.name, err)
		}
		required = append(required, found...)
	}
	return required, nil
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
					found = append(found, Permission{account, authorizationv1.ResourceAttributes{
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
	missing, total := map[string][]string{}, map[string]int{}
	for _, a := range f.Access.Value {
		if total[a.Account]++; total[a.Account] == 1 {
			accounts = append(accounts, a.Account)
		}
		if !a.Allowed {
			missing[a.Account] = append(missing[a.Account], a.String())
		}
	}
	var results []Result
	for _, account := range accounts {
		check := name + "/" + account
		if lacks := missing[account]; len(lacks) > 0 {
			results = append(results, failed(check, "install the roles of this version: helm upgrade, or kubectl apply --server-side -k config/"+f.folderOf(account, lacks),
				"the account lacks %d of %d permissions: %s", len(lacks), total[account], names(lacks))...)
			continue
		}
		results = append(results, ok(check, "the account has the %d permissions that it needs", total[account])...)
	}
	return results
}

// folderOf returns the folder of config that grants the account what it lacks.
func (f *Facts) folderOf(account string, lacks []string) string {
	switch {
	case account == workloadsName && strings.Contains(strings.Join(lacks, " "), " daemonsets"):
		return "daemonsets"
	case account == workloadsName && f.hasBroadcastJobs() && strings.Contains(strings.Join(lacks, " "), " broadcastjobs"):
		return "broadcastjobs"
	case account == workloadsName && f.hasCronJobs():
		return "cronjobs"
	case account == workloadsName && f.hasImagePulls():
		return "imagepulls"
	case account == workloadsName:
		return "workloads"
	case account == injectorName:
		return "sidecarsets"
	default:
		return "default"
	}
}
