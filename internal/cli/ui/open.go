// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// opener opens URLs in the browser of the user.
type opener struct {
	// system is the operating system, as in runtime.GOOS.
	system string
	// env returns a variable of the environment.
	env func(name string) string
	// find returns the path of a program.
	find func(program string) (string, error)
}

func newOpener() opener { return opener{system: runtime.GOOS, env: os.Getenv, find: exec.LookPath} }

// command returns the program that opens the URL, and its arguments.
func (o opener) command(address string) ([]string, error) {
	if browser := o.env("BROWSER"); browser != "" {
		if path, err := o.find(browser); err == nil {
			return []string{path, address}, nil
		}
		return nil, fmt.Errorf("the variable BROWSER is %q, which is no program", browser)
	}
	switch o.system {
	case "darwin":
		return []string{"open", address}, nil
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", address}, nil
	}
	if o.env("DISPLAY") == "" && o.env("WAYLAND_DISPLAY") == "" {
		return nil, errors.New("there is no display, as DISPLAY and WAYLAND_DISPLAY are not set")
	}
	path, err := o.find("xdg-open")
	if err != nil {
		return nil, errors.New("the program xdg-open is not installed")
	}
	return []string{path, address}, nil
}

// open opens the URL, and returns when the browser is started. It calls failed if the program fails
// later. The browser does not end with ctx: the user may have other pages in it.
func (o opener) open(ctx context.Context, address string, failed func(error)) error {
	args, err := o.command(address)
	if err != nil {
		return err
	}
	command := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...) //nolint:gosec // the user's browser
	command.SysProcAttr = ownSession()
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the browser: %w", err)
	}
	go func() {
		if err := command.Wait(); err != nil {
			failed(fmt.Errorf("%s: %w", args[0], err))
		}
	}()
	return nil
}
