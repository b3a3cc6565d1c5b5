// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// Rule is one kind of finding. Its name and severity do not change between versions.
type Rule struct {
	// Name is the name of the rule.
	Name string
	// Severity is the severity of its findings.
	Severity Severity
	// Summary is what the rule finds, in one sentence.
	Summary string
}

// All returns all rules: those of the API first, then those of probes, of marks, of workloads, of
// SidecarSets, of AdvancedCronJobs, of pulls before updates, of the protection from deletion, and of budgets.
func All() []Rule {
	return []Rule{
		ruleYAML, ruleNotAnObject, ruleKind, ruleNotServed, ruleAPIVersion, ruleUnknownField, ruleSchema, ruleMetadata, ruleTemplate,
		ruleMarkInSelector, ruleProviderAnnotation, ruleTicketLabel, ruleExclusiveValue, ruleDuplicateObject,
		rulePeriod, ruleShellLine, ruleShellSyntax, ruleShellBuiltin, ruleShellScript, ruleShellArguments, ruleFailedLabel, ruleNoPath,
		ruleDefaults, ruleAnnotation,
		ruleDeletionCost, ruleSharedMark,
		ruleMarkInWorkload, ruleServiceValue, ruleNoStartup, ruleNoPods, ruleNoContainer, ruleNoPort, ruleSidecarSet, ruleSchedule,
		rulePreDownload, ruleProtection,
		ruleBudgetOverlap, ruleBudgetPercentage, ruleGuardValue, ruleGuardExempt, ruleGuardEvictions, ruleGuardLabel, ruleGuardPrinted, ruleGuards,
	}
}

// Names returns the names of all rules, in the order of All.
func Names() []string {
	var names []string
	for _, r := range All() {
		names = append(names, r.Name)
	}
	return names
}

// CheckName returns an error unless a rule has the name. The error lists the rules, with a similar
// one last.
func CheckName(name string) error {
	names := Names()
	if slices.Contains(names, name) {
		return nil
	}
	last := len(names) - 1
	return fmt.Errorf("%q is invalid: must be %s or %s%s", name, strings.Join(names[:last], ", "), names[last],
		text.Suggestion(text.Closest(name, names)))
}

//nolint:gochecknoglobals // Go has no constants of struct types. Nothing changes these.
var (
	ruleYAML         = Rule{"invalid-yaml", Error, "A document is not valid YAML, or a key occurs twice."}
	ruleNotAnObject  = Rule{"not-an-object", Error, "A document has no apiVersion or no kind."}
	ruleKind         = Rule{"unknown-kind", Error, "A kind of apps.kruise.io or seamark.dev does not exist, or one of Kubernetes is misspelled."}
	ruleNotServed    = Rule{"kind-not-served", Warning, "Only OpenKruise serves the kind, not Seamark."}
	ruleAPIVersion   = Rule{"api-version", Error, "Seamark serves the kind with another apiVersion."}
	ruleUnknownField = Rule{"unknown-field", Error, "A field does not exist in the API, for example because it is misspelled."}
	ruleSchema       = Rule{"schema", Error, "A value breaks a rule of the CustomResourceDefinition: the API server rejects the object."}
	ruleMetadata     = Rule{"metadata", Error, "The name, namespace, labels or annotations of an object are invalid."}
	ruleTemplate     = Rule{"template", Error, "The template of pods or Jobs has an unknown field, or a value of the wrong type."}

	ruleMarkInSelector = Rule{
		"mark-in-selector", Error, "A marker sets a label whose key is in its own selector, so that each write could deselect the pod.",
	}
	ruleProviderAnnotation = Rule{
		"provider-annotation", Error, "A marker sets an annotation that Seamark itself sets on pods of virtual nodes. Seamark does not follow the marker.",
	}
	ruleTicketLabel = Rule{
		"ticket-label", Error,
		"A marker sets a label with the prefix exclusive.seamark.dev/, which Seamark itself sets for exclusive policies. Seamark does not follow the marker.",
	}
	ruleExclusiveValue = Rule{
		"exclusive-value", Error,
		"A marker sets a label or annotation of an exclusive policy to the same value in another state, so that several pods would have it. " +
			"Seamark does not follow the marker.",
	}
	ruleDuplicateObject = Rule{"duplicate-object", Warning, "Two documents have the same kind, namespace and name. The last one that is applied takes effect."}

	rulePeriod    = Rule{"period-shorter-than-timeout", Warning, "A probe can run longer than its period. Its next run then starts late."}
	ruleShellLine = Rule{
		"exec-shell-line", Warning, "The program of an exec probe contains blanks, so that a whole command line is taken for the name of a program.",
	}
	ruleShellSyntax    = Rule{"exec-shell-syntax", Warning, "An exec probe passes a shell operator or a variable to a program that is not a shell."}
	ruleShellBuiltin   = Rule{"exec-shell-builtin", Warning, "The program of an exec probe exists only inside shells."}
	ruleShellScript    = Rule{"exec-shell-script", Warning, "The script of an exec probe is missing or has a syntax error."}
	ruleShellArguments = Rule{
		"exec-shell-arguments", Warning,
		"An exec probe passes arguments to a shell script that does not use them, because the script is split into several items.",
	}
	ruleFailedLabel = Rule{
		"exec-failed-label", Warning,
		"A label of the state Failed is also set if a program in the script of an exec probe is missing: a shell reports that as a failure.",
	}
	ruleNoPath     = Rule{"exec-no-path", Info, "The program of an exec probe has no absolute path, so that it depends on the image which program runs."}
	ruleDefaults   = Rule{"openkruise-defaults", Info, "An unset period or threshold has another default than in OpenKruise."}
	ruleAnnotation = Rule{"invalid-annotation", Warning, "The annotation seamark.dev/message-updates has an invalid value. It counts as not set."}

	ruleDeletionCost = Rule{
		"deletion-cost", Warning,
		"The annotation controller.kubernetes.io/pod-deletion-cost is not an integer from -2147483648 to 2147483647. The API server refuses the marks.",
	}
	ruleSharedMark = Rule{"shared-mark", Warning, "Two probes set the same label, annotation or condition on the same pods. Only the first one takes effect."}

	ruleMarkInWorkload = Rule{
		"mark-in-workload-selector", Warning, "A marker sets a label whose key is in the selector of the workload that owns the pods, which then loses them.",
	}
	ruleServiceValue = Rule{"service-selector-value", Warning, "A Service selects a value that no probe sets, of a label that probes set. It selects no pod."}
	ruleNoStartup    = Rule{
		"no-startup-probe", Warning,
		"A probe has startupPolicy WaitForStarted, but the container of a matching pod template has no startup probe: it counts as started when it runs.",
	}
	ruleNoPods      = Rule{"no-matching-pods", Warning, "The selector of a marker matches none of the pod templates in the manifests."}
	ruleNoContainer = Rule{"container-not-found", Error, "No matching pod template has the container of the probe, and no SidecarSet injects it."}
	ruleNoPort      = Rule{"port-not-found", Error, "The container of the probe has no port with the name that the probe uses."}

	ruleSidecarSet = Rule{
		"sidecarset-not-accepted", Error,
		"A SidecarSet has what Seamark does not accept, or conflicts with a pod that it selects, or with another set that can select the same pods.",
	}

	ruleSchedule = Rule{
		"invalid-schedule", Error,
		"The schedule of an AdvancedCronJob is invalid, for example because a range is reversed, or no time matches it: no Job is created.",
	}

	rulePreDownload = Rule{
		"invalid-predownload", Warning, "An annotation about pulls before updates has an invalid value. Seamark pulls no images before the updates of the set.",
	}

	ruleProtection = Rule{
		"delete-protection", Warning,
		"The label policy.kruise.io/delete-protection has no effect, or Cascading has the effect of Always, because the kind has no spec.replicas.",
	}

	ruleBudgetOverlap = Rule{
		"budget-overlap", Warning, "Two PodDisruptionBudgets can select the same pods. The API server refuses the eviction of a pod with two budgets.",
	}
	ruleBudgetPercentage = Rule{
		"budget-percentage", Warning,
		"A PodDisruptionBudget has a percentage and selects pods by a label that probes set. It is a part of all replicas, not of the pods with the label.",
	}
	ruleGuardValue = Rule{
		"guard-value", Error,
		"A label of guards has another value than true, or their annotation no valid duration. The API server refuses it, or it has no effect.",
	}
	ruleGuardExempt = Rule{
		"guard-exempt", Warning,
		"A guard does not exclude pods with the label seamark.dev/guard-exempt: they can be deleted and not evicted.",
	}
	ruleGuardEvictions = Rule{"guard-evictions", Error, "A guard has numbers that permit evictions. The API server refuses it."}
	ruleGuardLabel     = Rule{"guard-label", Warning, "A guard selects by a label that no probe and no pod template of the manifests sets."}
	ruleGuardPrinted   = Rule{
		"guard-printed-label", Warning,
		"A guard with a maximum selects by a label whose value a probe prints. The maximum does not count from a change of the value.",
	}
	ruleGuards = Rule{"too-many-guards", Warning, "A namespace has more than 16 guards. Each of them adds to the time of each deletion there."}
)
