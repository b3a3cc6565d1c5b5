// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vulncheck runs govulncheck on a module, and fails if the module calls anything
// that the vulnerability database names.
//
//	vulncheck [--required] DIR PACKAGE...
//
// The database is vuln.go.dev, or the one at the URL in $GOVULNDB, https:// or file://.
// A machine that can't reach vuln.go.dev can't be checked: the command says so, and
// passes. With --required, or where $GOVULNDB names the database, it fails instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"golang.org/x/vuln/scan"
)

const (
	// publicDatabase is where govulncheck looks if it isn't told otherwise.
	publicDatabase = "https://vuln.go.dev"
	// reachTimeout bounds how long a database may take to answer.
	reachTimeout = 15 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], publicDatabase, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

// run checks the packages that args name, against the database that $GOVULNDB names or
// else against the public one.
func run(ctx context.Context, args []string, public string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("vulncheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	required := flags.Bool("required", false, "fail if the database can't be reached")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return fmt.Errorf("arguments %q: want a module's folder and packages of it", args)
	}
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = public
		if err := reach(ctx, database); err != nil {
			if *required {
				return err
			}
			fmt.Fprintf(stdout, "vulncheck: SKIPPED, nothing was checked: %v. Set GOVULNDB to the URL of a copy of it.\n", err)
			return nil
		}
	}
	command := scan.Command(ctx, append([]string{"-db", database, "-C", flags.Arg(0)}, flags.Args()[1:]...)...)
	command.Stdout, command.Stderr = stdout, stderr
	if err := errors.Join(command.Start(), command.Wait()); err != nil {
		return fmt.Errorf("govulncheck of %s with database %s: %w", flags.Arg(0), database, err)
	}
	return nil
}

// reach asks the database for its index, which every client reads first.
func reach(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, database+"/index/db.json", nil)
	if err != nil {
		return fmt.Errorf("reach the vulnerability database: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("reach the vulnerability database: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("reach the vulnerability database: %s: %s", request.URL, response.Status)
	}
	return nil
}
