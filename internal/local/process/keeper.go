// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs as process groups that do not outlive the program that
// started them, even if that program is killed. A Keeper starts a reaper: a second instance
// of its own program, in a separate session, that serves it over a pipe. The reaper starts
// the programs. When the pipe closes, because the keeper was closed or was killed, the reaper
// kills the remaining processes and removes the run's folder.
//
// On Linux, the reaper is a child subreaper: the kernel makes it the parent of the processes
// of the run whose parent has ended. All of its descendants belong to the run, and no others,
// so that it finds each process even if this has left its group, its session and its
// environment. On other systems it finds only the process groups.
//
// If the reaper itself is killed, the keeper kills the process groups. Processes that have
// left theirs remain then.
package process

import (
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

const (
	// reaperArgument is the first argument of a reaper. The second is the run's folder.
	reaperArgument = "reap-local-run"

	folderPrefix = "seamark-local-"

	// service is the name of the reaper's methods.
	service = "Reaper"
)

// Keeper starts processes that do not outlive it. Its methods are safe for concurrent use.
type Keeper struct {
	folder string
	lost   chan struct{}
	reaper *rpc.Client
	// files is the socket over which the reaper receives the files of processes. starting
	// keeps them in the order of the requests.
	starting sync.Mutex
	files    *os.File
}

// NewKeeper creates the run's folder and starts the reaper from the executable, which must
// call Reaper before anything else. An empty executable means the running program.
func NewKeeper(executable string) (*Keeper, error) {
	if executable == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find executable of the reaper: %w", err)
		}
		executable = self
	}
	folder, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("create folder of the run: %w", err)
	}
	k := &Keeper{folder: folder, lost: make(chan struct{})}
	reaper := exec.Command(executable, reaperArgument, folder)
	reaper.SysProcAttr = ownSession()
	if err := k.start(reaper); err != nil {
		closeAll(k.files)
		return nil, errors.Join(fmt.Errorf("start reaper: %w", err), os.Remove(folder))
	}
	go func() {
		defer close(k.lost)
		// The exit status does not matter.
		_ = reaper.Wait()
	}()
	return k, nil
}

func (k *Keeper) start(reaper *exec.Cmd) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer closeAll(theirs)
	k.files, reaper.ExtraFiles = ours, []*os.File{theirs}
	requests, err := reaper.StdinPipe()
	if err != nil {
		return err
	}
	responses, err := reaper.StdoutPipe()
	if err != nil {
		return err
	}
	if err := reaper.Start(); err != nil {
		return err
	}
	k.reaper = rpc.NewClient(connection{responses, requests})
	return nil
}

// Folder returns the absolute path of the run's folder. Close removes it.
func (k *Keeper) Folder() string { return k.folder }

// Lost is closed when the reaper has exited. If that happens before Close, the processes
// could outlive the run.
func (k *Keeper) Lost() <-chan struct{} { return k.lost }

// Close kills the remaining processes and removes the run's folder. It returns when both
// are done.
func (k *Keeper) Close() error {
	// Fails only if the reaper has exited.
	_ = k.reaper.Close()
	<-k.lost
	closeAll(k.files)
	// The reaper was killed if it has left the folder.
	return removeFolder(k.folder)
}

// Sets returns the sets of the running processes of the run by their PIDs. The set of a
// process is empty if it is not known. Sets returns nothing on systems without /proc.
func (k *Keeper) Sets() map[int]string {
	var sets map[int]string
	// Fails only if the reaper has exited, which Lost reports.
	_ = k.reaper.Call(service+".Sets", struct{}{}, &sets)
	return sets
}

// Reaper runs the reaper and exits if the program was started as one. Otherwise it returns
// at once.
func Reaper() {
	if len(os.Args) != 3 || os.Args[1] != reaperArgument {
		return
	}
	if err := reap(connection{os.Stdin, os.Stdout}, os.Args[2]); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// reap serves a keeper until it closes the connection, and then kills the remaining
// processes. The caller must exit then.
func reap(keeper connection, folder string) error {
	if !strings.HasPrefix(filepath.Base(folder), folderPrefix) {
		return fmt.Errorf("%q is not the folder of a run", folder)
	}
	catchSignals()
	adoptOrphans()
	r := newReaper()
	go r.track()
	requests, received := io.Pipe()
	go r.serve(connection{requests, keeper})
	// An error ends the run, too.
	_, _ = io.Copy(received, keeper)
	r.killAll()
	return removeFolder(folder)
}

// removeFolder removes a run's folder, even if it contains folders without write permission.
func removeFolder(folder string) error {
	err := os.RemoveAll(folder)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove folder of the run: %w", err)
	}
	return nil
}
