// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// guardedNamespace and guardedLease are the namespace and the name of the lease by which
	// seamark-workloads knows that OpenKruise's manager runs.
	guardedNamespace, guardedLease = "kruise-system", planning.OpenKruiseLease
	// excludedNamespace is the namespace in which seamark-workloads may not write pods and Jobs by default.
	excludedNamespace = "kube-system"

	// excludeFlag is the flag of OpenKruise's manager that excludes pods in PreparingDelete from the replicas of all CloneSets.
	excludeFlag = "cloneset-scaling-exclude-preparing-delete"

	priorityVariable   = "KRUISE_CONTAINER_PRIORITY"
	priorityAnnotation = "apps.kruise.io/container-launch-priority"
)

// The feature gates of OpenKruise that decide about findings. All of them but GateDeleteClaims and GateProtection are off by
// default.
const (
	// GateStartOrdinal lets OpenKruise honour spec.ordinals.start.
	GateStartOrdinal = "StatefulSetStartOrdinal"
	// GateResize lets OpenKruise change resources in place.
	GateResize = "InPlaceWorkloadVerticalScaling"
	// GateExpand lets OpenKruise expand the claims of StatefulSets.
	GateExpand = "StatefulSetAutoResizePVCGate"
	// GatePreDownload lets OpenKruise pull images before it updates pods.
	GatePreDownload = "PreDownloadImageForInPlaceUpdate"
	// GatePreDownloadDaemonSets is the same for DaemonSets.
	GatePreDownloadDaemonSets = "PreDownloadImageForDaemonSetUpdate"
	// GateNoDefaults keeps OpenKruise's webhooks from adding the defaults of pods to templates.
	GateNoDefaults = "TemplateNoDefaults"
	// GateRollback lets OpenKruise update pods of CloneSets back when the partition is raised.
	GateRollback = "CloneSetPartitionRollback"
	// GatePreparingUpdate lets OpenKruise count pods in the state PreparingUpdate as updated when it scales a set.
	GatePreparingUpdate = "PreparingUpdateAsUpdate"
	// GateDeleteClaims lets OpenKruise delete the claims of StatefulSets.
	GateDeleteClaims = "StatefulSetAutoDeletePVC"
	// GateProtection lets OpenKruise refuse the deletion of objects with a label.
	GateProtection = "ResourcesDeletionProtection"
)

// Manager is the Deployment of OpenKruise's manager.
type Manager struct {
	// Namespace and Name are those of the Deployment.
	Namespace, Name string
	// LeaderElection is whether the manager holds the Lease LeaseNamespace/LeaseName while it runs.
	LeaderElection            bool
	LeaseNamespace, LeaseName string
	// ExcludesPreparingDelete is whether pods of CloneSets in the state PreparingDelete do not count as replicas.
	ExcludesPreparingDelete bool
	// Unknown is whether no webhook of OpenKruise has a Service of this namespace.
	Unknown bool
	// Gates are the feature gates that the flags name, and those of this package, and whether they are on.
	Gates map[string]bool
}

// ManagerOf returns the flags of the manager that decide about findings, with OpenKruise's defaults.
func ManagerOf(deployment *appsv1.Deployment) *Manager {
	m := &Manager{Namespace: deployment.Namespace, Name: deployment.Name, Gates: map[string]bool{}}
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.BoolVar(&m.LeaderElection, "enable-leader-election", true, "")
	flags.StringVar(&m.LeaseNamespace, "leader-election-namespace", "kruise-system", "")
	flags.StringVar(&m.LeaseName, "leader-election-id", "kruise-manager", "")
	flags.BoolVar(&m.ExcludesPreparingDelete, excludeFlag, false, "")
	gates := flags.StringSlice("feature-gates", nil, "")
	containers := deployment.Spec.Template.Spec.Containers
	if i := max(slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "manager" }), 0); i < len(containers) {
		// The manager does not start with a flag that cannot be parsed.
		_ = flags.Parse(slices.Concat(containers[i].Command, containers[i].Args))
	}
	setGates(m.Gates, *gates)
	return m
}

// setGates records the gates that a flag turns on. AllAlpha turns on those that the flag does not name.
func setGates(on map[string]bool, flag []string) {
	for _, pair := range flag {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		on[name], _ = strconv.ParseBool(value)
	}
	for _, gate := range []string{GateStartOrdinal, GateResize, GateExpand, GatePreDownload, GatePreDownloadDaemonSets, GateNoDefaults,
		GateRollback, GatePreparingUpdate} {
		if _, named := on[gate]; !named {
			on[gate] = on["AllAlpha"]
		}
	}
}

// Disables reports whether a flag turns the gate, which is on by default, off: by its name or, as all are of the stage alpha,
// by AllAlpha.
func (m *Manager) Disables(gate string) bool {
	on, named := m.Gates[gate]
	if !named {
		on, named = m.Gates["AllAlpha"]
	}
	return named && !on
}

// has reports whether the gate is on, as far as it is known.
func (m *Manager) has(gate string) bool { return m != nil && m.Gates[gate] }

// checkTakeover returns what a take-over changes for sets that the schema accepts.
func checkTakeover(c Cluster) []Finding {
	sets := setsOf(c)
	found := slices.Concat(checkManager(c.Manager), checkGates(c), checkProtected(c))
	for _, s := range sets {
		found = append(found, s.changes(c.Manager)...)
		found = append(found, s.protections(c.Manager)...)
		found = append(found, s.preDownloads(c.Manager)...)
		if s.daemon != nil {
			found = append(found, s.daemonChanges()...)
		}
	}
	return append(found, checkMembers(c, sets)...)
}

// checkManager returns the findings about a manager whose lease seamark-workloads does not see.
func checkManager(m *Manager) []Finding {
	if m == nil || m.LeaderElection && m.LeaseNamespace == guardedNamespace && m.LeaseName == guardedLease && !m.Unknown {
		return nil
	}
	f := Finding{
		Level: Blocks, Kind: "Deployment", Namespace: m.Namespace, Name: m.Name,
		Field:      "--enable-leader-election",
		OpenKruise: "runs without a lease",
		Seamark:    "does not see that it runs: both would act on the same objects",
		Action:     "enable leader election of OpenKruise's manager",
	}
	switch {
	case !m.LeaderElection:
	case m.Unknown:
		f.Field, f.OpenKruise = "", "runs without the webhooks of MutatingWebhookConfiguration "+planning.OpenKruiseWebhook+" in its namespace"
		f.Seamark = "does not regard a lease as that of OpenKruise without them: both would act on the same objects"
		f.Action = "restore the configuration, or stop the manager before you install Seamark"
	case m.LeaseName != guardedLease:
		f.Field, f.OpenKruise = "--leader-election-id", fmt.Sprintf("holds the lease %s/%s", m.LeaseNamespace, m.LeaseName)
		f.Action = "use the lease " + guardedLease
	default:
		f.Field, f.OpenKruise = "--leader-election-namespace", fmt.Sprintf("holds the lease %s/%s", m.LeaseNamespace, m.LeaseName)
		f.Seamark = fmt.Sprintf("looks for the lease %s/%s by default: both would act on the same objects",
			guardedNamespace, guardedLease)
		f.Action = "install Seamark with workloads.config.openKruise.namespace=" + m.LeaseNamespace
	}
	return []Finding{f}
}

// checkGates returns the findings about gates that are on and that Seamark does not have.
func checkGates(c Cluster) []Finding {
	m, clones := c.Manager, cloneSets(c)
	if m == nil {
		return nil
	}
	finding := func(gate, openKruise, seamark, action string) Finding {
		return Finding{
			Level: Changes, Kind: "Deployment", Namespace: m.Namespace, Name: m.Name, Field: "--feature-gates",
			OpenKruise: "with the gate " + gate + ", " + openKruise, Seamark: seamark, Action: action,
		}
	}
	return applying(
		rule{m.has(GateRollback) && clones > 0, finding(GateRollback,
			"updates pods of CloneSets back to the current revision when the partition is raised", "keeps the revision of these pods",
			"to update pods back, write the template of the earlier revision")},
		rule{m.has(GatePreparingUpdate) && clones+len(c.Objects["StatefulSet"]) > 0, finding(GatePreparingUpdate,
			"counts pods in the state PreparingUpdate as updated when it scales a set", "counts them as pods of the revision that they have", "")},
	)
}

// changes returns what a take-over changes for the set and its pods to come.
func (s *set) changes(m *Manager) []Finding {
	containers := s.template.Spec.Containers
	return applying(
		rule{s.object.GetNamespace() == excludedNamespace, s.finding(Blocks, "metadata.namespace", "serves the set",
			"may not write pods in "+excludedNamespace+" by default",
			"install Seamark with workloads.excludedNamespaces without "+excludedNamespace)},
		rule{s.start != 0 && !m.has(GateStartOrdinal), s.finding(Blocks, "spec.ordinals.start",
			"ignores it while the gate "+GateStartOrdinal+" is off, its default: the ordinals start at 0",
			fmt.Sprintf("starts at %d: deletes the pods with lower ordinals, and creates others", s.start),
			"remove spec.ordinals")},
		rule{s.inPlace && !m.has(GateResize) && slices.ContainsFunc(containers, hasResources), s.finding(Changes,
			"spec.template.spec.containers.resources",
			"does not change resources in place while the gate "+GateResize+" is off, its default",
			"resizes pods in place where Kubernetes can", "")},
		rule{s.inPlace && slices.ContainsFunc(containers, readsMetadata), s.finding(Changes, "spec.template.spec.containers.env",
			"restarts a container in place when the label or annotation of its variable changes",
			"updates such a pod in place only if the image of the container changes, too", "")},
		rule{s.expands && !m.has(GateExpand), s.finding(Changes, "spec.volumeClaimUpdateStrategy.type",
			"ignores it while the gate "+GateExpand+" is off, its default",
			"expands the claims of a pod to the size of their templates before it updates the pod",
			"set OnDelete if the claims are to keep their size")},
		rule{s.deletes && m != nil && m.Disables(GateDeleteClaims), s.finding(Blocks, "spec.persistentVolumeClaimRetentionPolicy",
			"ignores it: the gate "+GateDeleteClaims+" is off",
			"deletes the claims of pods when the policy says so", "set whenDeleted and whenScaled to Retain if the claims are to stay")},
		rule{s.template.Annotations[priorityAnnotation] != "" || slices.ContainsFunc(containers, hasPriority), s.finding(Changes, "spec.template",
			"starts the containers of a new pod in the order of their launch priorities",
			"starts them together: only updates in place follow the priorities",
			"use init containers with restartPolicy Always for what must start first")},
		rule{s.held && !s.excludes && m != nil && m.ExcludesPreparingDelete, s.finding(Changes, "spec.scaleStrategy.excludePreparingDelete",
			"with the flag --"+excludeFlag+", does not count pods in the state PreparingDelete as replicas", "counts them",
			"set the label "+v1alpha1.CloneSetScalingExcludePreparingDeleteKey+`: "true"`)},
		rule{len(s.podsToDelete) > 0, s.finding(Changes, "spec.scaleStrategy.podsToDelete",
			"removes the name of a pod that is gone",
			"keeps the name, without effect: the condition PodsToDeleteNotFound names it",
			"let the program that adds names remove them")},
	)
}

func hasResources(c corev1.Container) bool {
	return len(c.Resources.Requests)+len(c.Resources.Limits) > 0
}

func hasPriority(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == priorityVariable })
}

// readsMetadata reports whether a variable of the container has the value of a label or annotation.
func readsMetadata(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
			return false
		}
		path := e.ValueFrom.FieldRef.FieldPath
		return strings.HasPrefix(path, "metadata.labels[") || strings.HasPrefix(path, "metadata.annotations[")
	})
}
