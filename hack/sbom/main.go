// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the software bill of materials (SBOM) of a Go program as CycloneDX JSON: the hash
// of the program, and every module in it with its version and hash.
//
// It uses the information that the Go linker writes into the program. The output contains no times or
// random numbers, so that the same program gives the same bytes.
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
	version := flags.String("version", "", "version of the program")
	out := flags.String("out", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *out == "" || flags.NArg() != 1 {
		return fmt.Errorf("arguments %q are invalid: must be --version VERSION --out FILE PROGRAM", args)
	}
	return write(flags.Arg(0), *version, *out)
}

// write writes the bill of a program to the file out.
func write(program, version, out string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read build information of %s: %w", program, err)
	}
	sum, err := sha256File(program)
	if err != nil {
		return err
	}
	bill, err := newBill(info, filepath.Base(program), version, sum)
	if err != nil {
		return fmt.Errorf("create bill of %s: %w", program, err)
	}
	file, err := os.Create(out + ".new")
	if err != nil {
		return fmt.Errorf("write bill of %s: %w", program, err)
	}
	defer file.Close()
	if err := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return fmt.Errorf("write bill of %s: %w", program, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write bill of %s: %w", program, err)
	}
	// A concurrent reader gets either the old bill or the new one.
	if err := os.Rename(out+".new", out); err != nil {
		return fmt.Errorf("write bill of %s: %w", program, err)
	}
	return nil
}
