// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/manifest/environ"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// reasonNotMounted is the reason of the event for a program that failed and uses the mount path of a volume. It has no
// counterpart in a cluster.
const reasonNotMounted = "VolumeNotMounted"

// maxShownPath is the maximum length of a path in an event, in bytes.
const maxShownPath = 256

// failed adds the events about a program, a hook or a probe of a container that has failed. It looks for mount paths in the texts about
// it, and then also in the program of the container and in its variables.
func (l *loop) failed(now time.Time, p *pod, name string, texts ...string) {
	if machine := p.machine.Container(name); machine != nil {
		l.hint(now, p, machine.Spec, texts)
		l.hint(now, p, machine.Spec, slices.Concat(texts, programOf(machine.Spec), valuesOf(machine.Spec)))
	}
}

// hint adds an event for each volume whose mount path is in the texts. There is one event for each volume and container.
func (l *loop) hint(now time.Time, p *pod, c *corev1.Container, texts []string) {
	if l.stopping {
		return
	}
	for i := range texts {
		// A mount path such as /tmp is also the beginning of the folders of the run.
		texts[i] = strings.ReplaceAll(texts[i], l.keeper.Folder(), "")
	}
	for _, mount := range named(c.VolumeMounts, texts) {
		if _, hasFolder := p.volumes[mount.Name]; !hasFolder || p.hinted[c.Name+"/"+mount.Name] {
			continue
		}
		p.hinted[c.Name+"/"+mount.Name] = true
		volume := mount.Name
		if place := l.options.Objects.VolumePlace(p.object, mount.Name); place != "" {
			volume += " (" + place + ")"
		}
		l.addEvent(now, p, c.Name, corev1.EventTypeWarning, reasonNotMounted, fmt.Sprintf(
			"%s is the mount path of volume %s, and a local run mounts nothing: the folder of the volume is in the variable %s",
			text.Truncate(mount.MountPath, maxShownPath), volume, environ.VolumeVariable(mount.Name)))
	}
}

// valuesOf returns the values of the variables of a container, except those that the run replaces.
func valuesOf(c *corev1.Container) []string {
	var values []string
	for _, variable := range c.Env {
		isFolder := func(mount corev1.VolumeMount) bool { return environ.VolumeVariable(mount.Name) == variable.Name }
		if !slices.ContainsFunc(c.VolumeMounts, isFolder) {
			values = append(values, variable.Value)
		}
	}
	return values
}

// missing is how programs say that a file or folder does not exist.
const missing = `(?i)no ?such ?file|nonexist|non-exist|not exist|not ?found`

// noticeLine adds the events about a line of output that says that a file below a mount path does not exist: the program may
// continue without it.
func (l *loop) noticeLine(now time.Time, p *pod, container, line string) {
	machine := p.machine.Container(container)
	if machine != nil && len(machine.Spec.VolumeMounts) > 0 && regexp.MustCompile(missing).MatchString(line) {
		l.hint(now, p, machine.Spec, []string{line})
	}
}

// named returns the mounts whose paths occur in the texts. A path in another one does not count as both. Texts of which one has the
// variable of the volume may have the path for a cluster.
func named(mounts []corev1.VolumeMount, texts []string) []corev1.VolumeMount {
	longestFirst := slices.SortedStableFunc(slices.Values(mounts), func(a, b corev1.VolumeMount) int {
		return cmp.Compare(len(b.MountPath), len(a.MountPath))
	})
	texts = slices.Clone(texts)
	var found []corev1.VolumeMount
	for _, mount := range longestFirst {
		at := path.Clean(mount.MountPath)
		occurs := false
		for i := range texts {
			if has, rest := cutPaths(texts[i], at); has {
				occurs, texts[i] = true, rest
			}
		}
		if occurs && !slices.ContainsFunc(texts, regexp.MustCompile(`\b`+regexp.QuoteMeta(environ.VolumeVariable(mount.Name))+`\b`).MatchString) {
			found = append(found, mount)
		}
	}
	return found
}

// cutPaths reports whether a text has the path, alone or with more steps, and returns the text without it.
func cutPaths(in, at string) (has bool, rest string) {
	if !path.IsAbs(at) || at == "/" {
		return false, in
	}
	isName := func(c byte) bool {
		return c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(in, at)
		if !found {
			return has, out.String() + in
		}
		startsHere := before == "" || !isName(before[len(before)-1]) && before[len(before)-1] != '/'
		// A full stop can end a sentence.
		endsHere := after == "" || !isName(after[0]) || after[0] == '.' && (len(after) == 1 || !isName(after[1]))
		out.WriteString(before)
		if startsHere && endsHere {
			has = true
		} else {
			out.WriteString(at)
		}
		in = after
	}
}
