// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

const (
	// groupSuffix is the end of the names of entries of several sets.
	groupSuffix = ".sidecarsetgroups.seamark.dev"
	// selectedCondition is the name of their condition.
	selectedCondition = "selected"
)

// member is a set in a group.
type member struct {
	// set is its name.
	set string
	// namespaces are the names of the namespaces that the set is bound to.
	namespaces []string
	// row is what the set requires, as a list of lists of texts: see selected.
	row      string
	inherits bool
}

// bytes returns the size of the member in the entry.
func (m member) bytes() int { return len(m.row) + len(strings.Join(m.namespaces, `","`)) }

// group is a shared entry.
type group struct {
	name          string
	configuration int
	failure       admissionregistrationv1.FailurePolicyType
	members       []member
	bytes         int
	// client is the stored address of the injectors, rows are the stored ones, and version is that of the stored path.
	client  admissionregistrationv1.WebhookClientConfig
	rows    map[string]bool
	version string
}

// count counts the bytes of the members.
func (g *group) count() {
	g.bytes = 0
	for _, m := range g.members {
		g.bytes += m.bytes()
	}
}

// The first text of a requirement.
const (
	opNamespace = "n"
	opIn        = "i"
	opNotIn     = "x"
	opExists    = "e"
	opNotExists = "d"
)

const (
	// value marks the values of a requirement: neither operators nor keys begin with it.
	value = "="
	// identity marks what identifies the set, among the namespaces: a set that is created again has another row.
	identity = "u"
	// groupPath is the path of a group. Its name, and after versionMark a resource version, follow: see GroupVersion.
	groupPath, versionMark = "/inject/group/", "."
)

// selected returns the expression that is true for the pods that one of the sets selects. The sets are data: API
// servers compile 128 of them as conditions in 174 ms, and as a list of rows in 9 ms. A row is a list of requirements,
// and a requirement a list of an operator, a key and values. The key of the namespaces is the name of the set. CEL and
// JSON quote these texts alike, so that stored rows can be read.
func selected(members []member) string {
	rows := make([]string, 0, len(members))
	for i := range members {
		rows = append(rows, members[i].row)
	}
	return "[" + strings.Join(rows, ",\n") + "]" + anySelects()
}

// anySelects returns the end of the expression: a list of rows is in front of it.
func anySelects() string {
	const label = `object.metadata.?labels[?r[1]]`
	const isOneOf = `(` + label + `.hasValue() && ("` + value + `" + ` + label + `.orValue("")) in r)`
	return ".exists(s, s.all(r,\n" +
		`r[0] == "` + opNamespace + `" ? ("` + value + `" + request.namespace) in r :` + "\n" +
		`r[0] == "` + opIn + `" ? ` + isOneOf + " :\n" +
		`r[0] == "` + opNotIn + `" ? !` + isOneOf + " :\n" +
		`r[0] == "` + opExists + `" ? ` + label + ".hasValue() : !" + label + ".hasValue()))"
}

// group returns the entry of several sets, given the resource versions of all.
func (s Server) group(g *group, versions map[string]string) admissionregistrationv1.MutatingWebhook {
	namespaces, inherits := sets.New[string](), false
	for _, m := range g.members {
		namespaces.Insert(m.namespaces...)
		inherits = inherits || m.inherits
	}
	entry := s.entry(g.name+groupSuffix, g.path(versions, s.StoredVersions[g.configuration]), g.failure, inherits)
	entry.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: sets.List(namespaces),
	}}}
	entry.ObjectSelector = &metav1.LabelSelector{}
	entry.MatchConditions = append(entry.MatchConditions, admissionregistrationv1.MatchCondition{Name: selectedCondition, Expression: selected(g.members)})
	return entry
}

// path returns the path of the entry. It ends with the newest resource version of the sets in the group, which changes only
// if rows are added, because each change is a write. The version does not decrease: a process that has lost its lease may
// have older sets. A stored version above the resource version of its own configuration was not written in this cluster: the
// entry was restored from another one, and perhaps no cache reaches the version. Both kinds are in one etcd, whose revision
// only grows; with separate ones, the version may decrease.
func (g *group) path(versions map[string]string, stored string) string {
	newest, changed := "", false
	for _, m := range g.members {
		changed = changed || !g.rows[m.row]
		if version := versions[m.set]; newest == "" || objectversion.Older(newest, version) {
			newest = version
		}
	}
	version := g.version
	if objectversion.Older(stored, version) {
		version, changed = "", true
	}
	// A path without a valid version gets one with the next row.
	if changed && (version == "" || objectversion.Older(version, newest)) {
		version = newest
	}
	if version == "" {
		return groupPath + g.name
	}
	return groupPath + g.name + versionMark + version
}

// GroupVersion returns the resource version of SidecarSets that a cache must have reached to have all sets of a group as
// its entry has them, given the last part of the path of the entry. It is empty if the path has none.
func GroupVersion(last string) string {
	_, version, _ := strings.Cut(last, versionMark)
	return version
}

// storedVersion returns the version in the address of a stored entry.
func storedVersion(client *admissionregistrationv1.WebhookClientConfig) string {
	path := ptr.Deref(client.URL, "")
	if client.Service != nil {
		path = ptr.Deref(client.Service.Path, "")
	}
	return comparableVersion(GroupVersion(path[strings.LastIndexByte(path, '/')+1:]))
}

// comparableVersion returns the resource version, or nothing if it is not a number: it cannot be compared, and may not be
// valid in a path.
func comparableVersion(version string) string {
	if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
		return ""
	}
	return version
}

// parseGroup returns the group of a stored entry. Rows that it does not understand are not members.
func parseGroup(name string, configuration int, entry *admissionregistrationv1.MutatingWebhook) *group {
	g := &group{
		name: name, configuration: configuration, failure: ptr.Deref(entry.FailurePolicy, ""), client: entry.ClientConfig,
		rows: map[string]bool{}, version: storedVersion(&entry.ClientConfig),
	}
	inherits := ptr.Deref(entry.ReinvocationPolicy, "") == admissionregistrationv1.IfNeededReinvocationPolicy
	for _, condition := range entry.MatchConditions {
		list, ok := strings.CutSuffix(condition.Expression, anySelects())
		var rows []json.RawMessage
		if condition.Name != selectedCondition || !ok || json.Unmarshal([]byte(list), &rows) != nil {
			continue
		}
		for _, row := range rows {
			var requirements [][]string
			if json.Unmarshal(row, &requirements) != nil || len(requirements) == 0 || len(requirements[0]) < 2 {
				continue
			}
			m := member{set: requirements[0][1], row: string(row), inherits: inherits}
			for _, text := range requirements[0][2:] {
				if name, isName := strings.CutPrefix(text, value); isName {
					m.namespaces = append(m.namespaces, name)
				}
			}
			g.members, g.rows[m.row] = append(g.members, m), true
		}
	}
	g.count()
	return g
}

// newMember returns the set as a member of a group, or false if it is not bound to named namespaces: the API
// server does not show conditions the labels of a namespace.
func (s Server) newMember(set *v1alpha1.SidecarSet) (member, bool) {
	targets := set.Status.InForce.Targets()
	namespaces, ok := Named(targets)
	namespaces = slices.DeleteFunc(namespaces, func(name string) bool { return slices.Contains(s.Excluded(), name) })
	if !ok || len(namespaces) == 0 {
		return member{}, false
	}
	row := [][]string{append(requirement(opNamespace, set.Name, namespaces), identify(set.UID))}
	for _, key := range slices.Sorted(maps.Keys(targets.Selector.MatchLabels)) {
		row = append(row, requirement(opIn, key, []string{targets.Selector.MatchLabels[key]}))
	}
	operators := map[metav1.LabelSelectorOperator]string{
		metav1.LabelSelectorOpIn: opIn, metav1.LabelSelectorOpNotIn: opNotIn,
		metav1.LabelSelectorOpExists: opExists, metav1.LabelSelectorOpDoesNotExist: opNotExists,
	}
	for _, expression := range targets.Selector.MatchExpressions {
		row = append(row, requirement(operators[expression.Operator], expression.Key, expression.Values))
	}
	// Texts always encode.
	encoded, _ := json.Marshal(row)
	return member{set: set.Name, namespaces: namespaces, row: string(encoded), inherits: set.Status.InForce.Inherits}, true
}

// identify returns the text that identifies a set, which is short: entries have many.
func identify(uid types.UID) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(uid))
	return identity + strconv.FormatUint(uint64(sum.Sum32()), 36)
}

// Named returns the names of the namespaces that the set is bound to, sorted, or false if it selects namespaces
// by other labels than the name.
func Named(spec *v1alpha1.SidecarSetSpec) ([]string, bool) {
	var names sets.Set[string]
	permit := func(values ...string) {
		if allowed := sets.New(values...); names == nil {
			names = allowed
		} else {
			names = names.Intersection(allowed)
		}
	}
	for _, selector := range overlap.Namespaces(spec) {
		for key, value := range selector.MatchLabels {
			if key != corev1.LabelMetadataName {
				return nil, false
			}
			permit(value)
		}
		for _, expression := range selector.MatchExpressions {
			if expression.Key != corev1.LabelMetadataName || expression.Operator != metav1.LabelSelectorOpIn {
				return nil, false
			}
			permit(expression.Values...)
		}
	}
	return sets.List(names), names != nil
}

// requirement returns the texts of a requirement.
func requirement(operator, key string, values []string) []string {
	texts := []string{operator, key}
	for _, text := range values {
		texts = append(texts, value+text)
	}
	return texts
}
