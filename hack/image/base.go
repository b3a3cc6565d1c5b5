// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing/fstest"
)

// Path is the variable with the usual folders of programs.
const Path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Base returns the files that programs expect in every image: root in /etc/passwd, and a /tmp that everyone can write to.
func Base() fstest.MapFS {
	return fstest.MapFS{
		"etc/passwd": {Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/home:/bin/false\n" +
			"nobody:x:65534:65534:nobody:/home:/bin/false\n")},
		"etc/group": {Mode: 0o644, Data: []byte("root:x:0:\nnonroot:x:65532:\nnobody:x:65534:\n")},
		"home":      {Mode: fs.ModeDir | 0o755},
		"root":      {Mode: fs.ModeDir | 0o700},
		"tmp":       {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		"var/tmp":   {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// Busybox returns an image with the static program and a link for each of its applets. Its layout is that of the
// usual busybox image: a shell at /bin/sh, root in /etc/passwd, a /tmp that everyone can write to.
func Busybox(ctx context.Context, name, program string) (Image, error) {
	out, err := exec.CommandContext(ctx, program, "--list-full").Output()
	if err != nil {
		return Image{}, fmt.Errorf("list the applets of %s: %w", program, err)
	}
	image := Image{
		Name:  name,
		Cmd:   []string{"sh"},
		Env:   []string{Path},
		Files: Base(),
	}
	if err := image.AddFile(program, "/bin/busybox"); err != nil {
		return Image{}, err
	}
	applets := strings.Fields(string(out))
	if len(applets) == 0 {
		return Image{}, errors.New("list the applets of " + program + ": the list is empty")
	}
	for _, applet := range applets {
		if inside := strings.TrimPrefix(applet, "/"); image.Files[inside] == nil {
			image.Files[inside] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte("/bin/busybox")}
		}
	}
	return image, nil
}
