// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// protection is the field with the label that protects an object from deletion.
const protection = "metadata.labels[" + v1alpha1.DeleteProtectionKey + "]"

// unprotects is what OpenKruise does with the label while its gate is off.
const unprotects = "ignores the label: the gate " + GateProtection + " is off"

// protections returns what differs for the set if it has the label that protects it from deletion.
func (s *set) protections(m *Manager) []Finding {
	value := s.object.GetLabels()[v1alpha1.DeleteProtectionKey]
	if value != v1alpha1.DeleteProtectionAlways && value != v1alpha1.DeleteProtectionCascading {
		return nil
	}
	const refuses, action = "refuses the deletion of the set", "remove the label, or install Seamark with policies.deleteProtection.enabled=false"
	off := m != nil && m.Disables(GateProtection)
	return applying(
		rule{off, s.finding(Changes, protection, unprotects, refuses, action)},
		rule{!off && s.daemon != nil, s.finding(Changes, protection, "ignores the label of DaemonSets", refuses, action)},
	)
}

// checkProtected returns the findings about namespaces and CRDs with the value Cascading of the label. An admission policy does
// not see what they contain.
func checkProtected(c Cluster) []Finding {
	var found []Finding
	for _, object := range c.Protected {
		does := map[string]string{"Namespace": "pods", "CustomResourceDefinition": "objects"}[object.Kind]
		f := Finding{
			Level: Changes, Kind: object.Kind, Name: object.Name, Field: protection,
			OpenKruise: "refuses the deletion while there are " + does, Seamark: "refuses the deletion, as with Always",
			Action: "remove the label before you delete the object",
		}
		if c.Manager != nil && c.Manager.Disables(GateProtection) {
			f.OpenKruise = unprotects
		}
		found = append(found, f)
	}
	return found
}
