// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
)

// sharedRejections are changes that make both valid workloads invalid.
func sharedRejections() map[string]rejection {
	const (
		holdOne  = "must contain at least one label in matchLabels or one requirement in matchExpressions"
		selector = "spec.selector"
		labels   = "spec.template.metadata.labels"
		pod      = "spec.template.spec"
		claims   = "spec.volumeClaimTemplates"
		hook     = "spec.lifecycle.preDelete"
		// labelValue is the pattern of values of labels.
		labelValue = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	)
	long := strings.Repeat("a", 64)
	container := map[string]any{"name": "server", "image": "game:1"}
	return map[string]rejection{
		"no spec":                   one("spec", remove{}, "Required value"),
		"name too long":             one("metadata.name", strings.Repeat("a", 53), "52"),
		"replicas negative":         one("spec.replicas", -1, "greater than or equal to 0"),
		"replicas too large":        one("spec.replicas", 262145, "less than or equal to 262144"),
		"history limit too large":   one("spec.revisionHistoryLimit", 1<<31, "2147483647"),
		"history limit negative":    one("spec.revisionHistoryLimit", -1, "greater than or equal to 0"),
		"no selector":               one(selector, remove{}, "Required value"),
		"selector empty":            one(selector, map[string]any{}, holdOne),
		"selector label key":        one(selector+".matchLabels", map[string]any{"a b": "c"}, `must contain the label "a b: c"`).at(labels),
		"selector label value":      one(selector+".matchLabels", map[string]any{"app": "-"}, labelValue).at(selector + ".matchLabels.app"),
		"selector operator":         one(selector+".matchExpressions[0].operator", "Is", `"In", "NotIn", "Exists", "DoesNotExist"`),
		"selector without values":   one(selector+".matchExpressions[0].values", []any{}, "must contain at least one value for the operators In and NotIn"),
		"selector value":            one(selector+".matchExpressions[0].values[0]", "a/b", "must be a label value"),
		"too many selector labels":  one(selector+".matchLabels", keys(65), "64"),
		"template without label":    one(labels+".app", remove{}, "must contain the label", "app: ").at(labels),
		"template label differs":    one(labels+".app", "other", "of spec.selector.matchLabels").at(labels),
		"template without metadata": one("spec.template.metadata", remove{}, "must contain the label").at(labels),
		"template label key":        one(labels+".b c", "d", "keys must be qualified names").at(labels),
		"template label too long":   one(labels+".b", long, "63").at(labels + ".b"),
		"template label value":      one(labels+".b", "-", labelValue).at(labels + ".b"),
		"template does not match": one(selector+".matchExpressions[0]", map[string]any{"key": "app", "operator": "DoesNotExist"},
			"must match all requirements of spec.selector.matchExpressions").at(labels),
		"template lacks a key": one(selector+".matchExpressions[0]", map[string]any{"key": "b", "operator": "Exists"},
			"must match all requirements of spec.selector.matchExpressions").at(labels),
		"no template":             one("spec.template", remove{}, "Required value"),
		"template without spec":   one(pod, remove{}, "Required value"),
		"no containers":           one(pod+".containers", remove{}, "Required value"),
		"containers empty":        one(pod+".containers", []any{}, "at least 1"),
		"container without name":  one(pod+".containers[0].name", remove{}, "Required value"),
		"container name":          one(pod+".containers[0].name", "Server", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
		"container name too long": one(pod+".containers[0].name", long, "63"),
		"container name twice": one(
			pod+".containers", []any{container, container}, `must have different names: several have the name "server"`,
		).at(pod + ".containers"),
		"init container name twice": one(
			pod+".initContainers", []any{container, container}, `must have different names: several have the name "server"`,
		).at(pod + ".initContainers"),
		"too many containers":     one(pod+".containers", repeat(container, 129), "128"),
		"container without image": one(pod+".containers[0].image", remove{}, "Required value"),
		"container image empty":   one(pod+".containers[0].image", "", "at least 1"),
		"init container name": one(
			pod+".initContainers", []any{map[string]any{"name": "A", "image": "a"}}, "^[a-z0-9]",
		).at(pod + ".initContainers[0].name"),
		"restart policy":           one(pod+".restartPolicy", "Never", `"Always"`),
		"activeDeadlineSeconds":    one(pod+".activeDeadlineSeconds", 10, "must not be set"),
		"claim template no name":   one(claims+"[0].metadata.name", remove{}, "Required value"),
		"claim template name":      one(claims+"[0].metadata.name", "A", "^[a-z0-9]"),
		"claim template no spec":   one(claims+"[0].spec", remove{}, "Required value"),
		"too many claim templates": one(claims, repeat(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}, 33), "32"),
		"hook empty":               one(hook, map[string]any{}, "must contain at least one label in labelsHandler or one finalizer in finalizersHandler"),
		"hook preNormal empty":     one("spec.lifecycle.preNormal", map[string]any{}, "must contain at least one label"),
		"hook without handlers":    one(hook, map[string]any{"markPodNotReady": true}, "must contain at least one label"),
		"hook label key":           one(hook+".labelsHandler", map[string]any{"a b": "c"}, "keys must be qualified names"),
		"hook label value":         one(hook+".labelsHandler", map[string]any{"a": "-"}, "must be a label value").at(hook + ".labelsHandler[a]"),
		"too many hook labels":     one(hook+".labelsHandler", keys(17), "16"),
		"hook finalizer":           one(hook+".finalizersHandler", []any{"match"}, "must be a finalizer").at(hook + ".finalizersHandler[0]"),
		"hook finalizer twice":     one(hook+".finalizersHandler", []any{"a.io/b", "a.io/b"}, "Duplicate value").at(hook + ".finalizersHandler[1]"),
		"unknown hook field":       one("spec.lifecycle.inPlaceUpdate", map[string]any{"finalizersHandler": []any{}}, "must contain at least one label"),
	}
}

// priorityRejections are changes of a priorityStrategy at the path.
func priorityRejections(path string) map[string]rejection {
	term := func(weight any, selector map[string]any) []any {
		return []any{map[string]any{"weight": weight, "matchSelector": selector}}
	}
	role := map[string]any{"matchLabels": map[string]any{"role": "secondary"}}
	all := map[string]rejection{
		"priorities of both kinds": {
			edits: []edit{
				{path + ".orderPriority", []any{map[string]any{"orderedKey": "a"}}},
				{path + ".weightPriority", term(1, role)},
			},
			field: path + ".weightPriority", message: []string{"must not be set if orderPriority is set"},
		},
		"order key empty": one(
			path, map[string]any{"orderPriority": []any{map[string]any{"orderedKey": ""}}}, "must be a label key",
		).at(path + ".orderPriority[0].orderedKey"),
		"order key": one(
			path, map[string]any{"orderPriority": []any{map[string]any{"orderedKey": "a b"}}}, "must be a label key",
		).at(path + ".orderPriority[0].orderedKey"),
		"too many order keys": one(path, map[string]any{"orderPriority": repeat(map[string]any{"orderedKey": "a"}, 17)}, "16").at(path + ".orderPriority"),
		"too many weights":    one(path, map[string]any{"weightPriority": repeat(term(1, role)[0], 17)}, "16").at(path + ".weightPriority"),
		"weight without selector": one(
			path, map[string]any{"weightPriority": []any{map[string]any{"weight": 1}}}, "Required value",
		).at(path + ".weightPriority[0].matchSelector"),
		"weight selector empty": one(
			path, map[string]any{"weightPriority": term(1, map[string]any{})}, "must contain at least one label",
		).at(path + ".weightPriority[0].matchSelector"),
		"weight selector operator": one(path, map[string]any{"weightPriority": term(1, map[string]any{
			"matchExpressions": []any{map[string]any{"key": "a", "operator": "Is"}},
		})}, `"In", "NotIn", "Exists", "DoesNotExist"`).at(path + ".weightPriority[0].matchSelector.matchExpressions[0].operator"),
	}
	for _, weight := range []int{-1, 0, 101} {
		all[fmt.Sprintf("weight %d", weight)] = one(
			path, map[string]any{"weightPriority": term(weight, role)}, "should be",
		).at(path + ".weightPriority[0].weight")
	}
	return all
}

func cloneSetRejections() map[string]rejection {
	const (
		scale  = "spec.scaleStrategy"
		update = "spec.updateStrategy"
		both   = "must not be 0 if maxSurge is 0"
	)
	return map[string]rejection{
		"minReadySeconds negative":   one("spec.minReadySeconds", -1, "greater than or equal to 0"),
		"pod named twice":            one(scale+".podsToDelete", []any{"a", "a"}, "Duplicate value").at(scale + ".podsToDelete[1]"),
		"named pod":                  one(scale+".podsToDelete[0]", "A", "^[a-z0-9]"),
		"named pod empty":            one(scale+".podsToDelete[0]", "", "at least 1"),
		"scale maxUnavailable 0":     one(scale+".maxUnavailable", 0, "greater than or equal to 1"),
		"scale maxUnavailable 0%":    one(scale+".maxUnavailable", "0%", "%$"),
		"update type":                one(update+".type", "Recreate", `"ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"`),
		"partition negative":         one(update+".partition", -1, "greater than or equal to 0"),
		"partition too large":        one(update+".partition", 1<<31, "2147483647"),
		"deadline 0":                 one("spec.progressDeadlineSeconds", 0, "greater than or equal to 1"),
		"deadline too large":         one("spec.progressDeadlineSeconds", 1<<31, "2147483647"),
		"deadline too short":         one("spec.progressDeadlineSeconds", 5, "must be greater than minReadySeconds"),
		"minReadySeconds too large":  one("spec.minReadySeconds", 1<<31, "2147483647").with(edit{"spec.progressDeadlineSeconds", remove{}}),
		"partition 101%":             one(update+".partition", "101%", "%$"),
		"partition text":             one(update+".partition", "half", "%$"),
		"maxUnavailable negative":    one(update+".maxUnavailable", -1, "greater than or equal to 0"),
		"maxUnavailable text":        one(update+".maxUnavailable", "5", "%$"),
		"maxSurge negative":          one(update+".maxSurge", -1, "greater than or equal to 0"),
		"maxSurge text":              one(update+".maxSurge", "-5%", "%$"),
		"no surge, none unavailable": one(update+".maxUnavailable", 0, both).with(edit{update + ".maxSurge", 0}),
		"0% surge, 0% unavailable":   one(update+".maxUnavailable", "0%", both).with(edit{update + ".maxSurge", "0%"}),
		"surge with InPlaceOnly":     one(update+".type", "InPlaceOnly", "must be 0 if type is InPlaceOnly").at(update + ".maxSurge"),
		"scatter key":                one(update+".scatterStrategy[0].key", "a b", "must be a label key"),
		"scatter key empty":          one(update+".scatterStrategy[0].key", "", "must be a label key"),
		"scatter value":              one(update+".scatterStrategy[0].value", "-", "must be a label value"),
		"scatter term twice": one(
			update+".scatterStrategy", repeat(map[string]any{"key": "a", "value": "b"}, 2), "Duplicate value",
		).at(update + ".scatterStrategy[1]"),
		"too many scatter terms": one(update+".scatterStrategy", scatterTerms(17), "16"),
		"grace period negative":  one(update+".inPlaceUpdateStrategy.gracePeriodSeconds", -1, "greater than or equal to 0"),
		"grace period too long":  one(update+".inPlaceUpdateStrategy.gracePeriodSeconds", 3601, "3600"),
		"no parallel pulls":      one(update+".inPlaceUpdateStrategy.imagePreDownloadParallelism", 0, "greater than or equal to 1"),
		"parallel pulls, part":   one(update+".inPlaceUpdateStrategy.imagePreDownloadParallelism", "0%", "imagePreDownloadParallelism"),
		"pulls too long":         one(update+".inPlaceUpdateStrategy.imagePreDownloadTimeoutSeconds", 86401, "86400"),
		"pulls after too many":   one(update+".inPlaceUpdateStrategy.imagePreDownloadMinUpdatedReadyPods", "101%", "imagePreDownloadMinUpdatedReadyPods"),
		"too many named pods":    one(scale+".podsToDelete", podNames(5001), "5000"),
	}
}

func statefulSetRejections() map[string]rejection {
	const (
		rolling = "spec.updateStrategy.rollingUpdate"
		policy  = "spec.persistentVolumeClaimRetentionPolicy"
		ordered = "OrderedReady"
	)
	// The valid set without the fields that require Parallel.
	sequential := func(r rejection) rejection {
		r.edits = append([]edit{
			{"spec.podManagementPolicy", ordered},
			{rolling + ".unorderedUpdate", remove{}}, {rolling + ".maxUnavailable", 1}, {"spec.scaleStrategy.maxUnavailable", 1},
		}, r.edits...)
		return r
	}
	return map[string]rejection{
		"name with a dot":          one("metadata.name", "a.b", "^[a-z0-9]"),
		"service name":             one("spec.serviceName", "A", "^"),
		"management policy":        one("spec.podManagementPolicy", "parallel", `"OrderedReady", "Parallel"`),
		"update type":              one("spec.updateStrategy.type", "Rolling", `"RollingUpdate", "OnDelete"`),
		"claim update type":        one("spec.volumeClaimUpdateStrategy.type", "OnUpdate", `"OnDelete", "OnPodRollingUpdate"`),
		"partition negative":       one(rolling+".partition", -1, "greater than or equal to 0"),
		"maxUnavailable 0":         one(rolling+".maxUnavailable", 0, "greater than or equal to 1"),
		"maxUnavailable 0%":        one(rolling+".maxUnavailable", "0%", "%$"),
		"maxUnavailable text":      one(rolling+".maxUnavailable", "one", "%$"),
		"pod update policy":        one(rolling+".podUpdatePolicy", "Recreate", `"ReCreate", "InPlaceIfPossible", "InPlaceOnly"`),
		"minReadySeconds negative": one(rolling+".minReadySeconds", -1, "greater than or equal to 0"),
		"minReadySeconds too long": one(rolling+".minReadySeconds", 301, "300"),
		"deadline 0":               one("spec.progressDeadlineSeconds", 0, "greater than or equal to 1"),
		"deadline too short": one("spec.progressDeadlineSeconds", 5, "must be greater than minReadySeconds").with(
			edit{rolling + ".minReadySeconds", 5},
		),
		"grace period too long":       one(rolling+".inPlaceUpdateStrategy.gracePeriodSeconds", 3601, "3600"),
		"no parallel pulls":           one(rolling+".inPlaceUpdateStrategy.imagePreDownloadParallelism", "0%", "imagePreDownloadParallelism"),
		"pulls after too many":        one(rolling+".inPlaceUpdateStrategy.imagePreDownloadMinUpdatedReadyPods", -1, "greater than or equal to 0"),
		"ordinal negative":            one("spec.reserveOrdinals[0]", -1, "greater than or equal to 0"),
		"ordinal too large":           one("spec.reserveOrdinals[0]", 1<<31, "2147483647"),
		"ordinal text":                one("spec.reserveOrdinals[0]", "1", "-[0-9]"),
		"range without end":           one("spec.reserveOrdinals[1]", "3-", "-[0-9]"),
		"range of letters":            one("spec.reserveOrdinals[1]", "a-b", "-[0-9]"),
		"range negative":              one("spec.reserveOrdinals[1]", "-3-5", "-[0-9]"),
		"range reversed":              one("spec.reserveOrdinals[1]", "5-3", "must not end below its start"),
		"range reversed, more digits": one("spec.reserveOrdinals[1]", "10-9", "must not end below its start"),
		"too many ordinals":           one("spec.reserveOrdinals", repeat(1, 10001), "10000"),
		"scale maxUnavailable 0":      one("spec.scaleStrategy.maxUnavailable", 0, "greater than or equal to 1"),
		"claims when deleted":         one(policy+".whenDeleted", "Keep", `"Retain", "Delete"`),
		"claims when scaled":          one(policy+".whenScaled", "Keep", `"Retain", "Delete"`),
		"start too large":             one("spec.ordinals.start", 1<<31-1, "must be at most 2147483648 - replicas"),
		"start negative":              one("spec.ordinals.start", -1, "greater than or equal to 0"),
		"ordered, unorderedUpdate":    sequential(one(rolling+".unorderedUpdate", map[string]any{}, "requires Parallel")),
		"ordered, scale unavailable":  sequential(one("spec.scaleStrategy.maxUnavailable", 2, "must be 1 or not set")),
	}
}

func scatterTerms(n int) []any {
	terms := make([]any, n)
	for i := range terms {
		terms[i] = map[string]any{"key": fmt.Sprintf("key-%d", i), "value": "a"}
	}
	return terms
}

func podNames(n int) []any {
	names := make([]any, n)
	for i := range names {
		names[i] = fmt.Sprintf("game-%d", i)
	}
	return names
}
