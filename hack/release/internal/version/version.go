// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version defines which versions a release can have, and finds the commit that it is built from.
package version

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Version is the version of a release, with the letter v: v0.2.0 or v0.2.0-rc.1.
type Version string

// Parse parses the version of a release. It is a semantic version with the letter v and without build metadata,
// which tags of images cannot contain.
func Parse(text string) (Version, error) {
	if !semver.IsValid(text) || semver.Canonical(text) != text {
		return "", fmt.Errorf("version: %q is invalid: must be a semantic version with the letter v and three numbers, "+
			"such as v0.2.0 or v0.2.0-rc.1, and without build metadata", text)
	}
	return Version(text), nil
}

// Number returns the version without the letter v, as charts and changelogs use it.
func (v Version) Number() string { return strings.TrimPrefix(string(v), "v") }

// Commit is the commit that a release is built from.
type Commit struct {
	// Hash is the full hash of the commit.
	Hash string
	// Time is the time of the commit, in UTC. All files of a release have this time.
	Time time.Time
}

// Head returns the commit that is checked out in a repository. It fails if the files differ from those of the
// commit, or if the version is a tag of another commit.
func Head(ctx context.Context, repository string, v Version) (Commit, error) {
	changes, err := git(ctx, repository, "status", "--porcelain")
	if err != nil {
		return Commit{}, err
	}
	if changes != "" {
		return Commit{}, fmt.Errorf("%s has changes that are not committed, and a release is built from a commit:\n%s", repository, changes)
	}
	hash, err := git(ctx, repository, "rev-parse", "HEAD")
	if err != nil {
		return Commit{}, err
	}
	tagged, err := git(ctx, repository, "for-each-ref", "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)", "refs/tags/"+string(v))
	if err != nil {
		return Commit{}, err
	}
	if tagged != "" && tagged != hash {
		return Commit{}, fmt.Errorf("version: %s is the tag of commit %s, but commit %s is checked out", v, tagged, hash)
	}
	seconds, err := git(ctx, repository, "show", "--no-patch", "--format=%ct", hash)
	if err != nil {
		return Commit{}, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Commit{}, fmt.Errorf("time of commit %s: %w", hash, err)
	}
	return Commit{Hash: hash, Time: time.Unix(unix, 0).UTC()}, nil
}

// git runs git and returns its output without the line break at its end.
func git(ctx context.Context, repository string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", repository}, args...)...)
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s in %s: %w: %s", args[0], repository, err, strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w", args[0], repository, err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
