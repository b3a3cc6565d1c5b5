// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the bill of materials of a Go program as CycloneDX JSON: the
// program's own hash, and every module that is linked into it with its version and hash.
//
// All data comes from what the Go linker has written into the program. It contains no time and no
// random number, so the same program produces the same bytes.
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, usage io.Writer) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.SetOutput(usage)
	version := flags.String("version", "", "version of the program, as it is stamped into it")
	out := flags.String("out", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *out == "" || flags.NArg() != 1 {
		return fmt.Errorf("arguments %q: want --version VERSION --out FILE PROGRAM", args)
	}
	return write(flags.Arg(0), *version, *out)
}

// write writes the bill of the program in a file to another.
func write(program, version, out string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read what %s is built from: %w", program, err)
	}
	sum, err := sha256File(program)
	if err != nil {
		return err
	}
	bill, err := newBill(info, filepath.Base(program), version, sum)
	if err != nil {
		return fmt.Errorf("bill of %s: %w", program, err)
	}
	file, err := os.Create(out + ".new")
	if err != nil {
		return fmt.Errorf("write the bill of %s: %w", program, err)
	}
	defer file.Close()
	if err := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return fmt.Errorf("write the bill of %s: %w", program, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write the bill of %s: %w", program, err)
	}
	// A reader of the file sees the old bill or the new one.
	if err := os.Rename(out+".new", out); err != nil {
		return fmt.Errorf("write the bill of %s: %w", program, err)
	}
	return nil
}
