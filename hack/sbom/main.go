// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the software bill of materials (SBOM) of a Go program as CycloneDX JSON: the hash
// of the program, and every module in it with its version and hash.
//
// It uses the information that the Go linker writes into the program. The output contains no times or
// random numbers, so that the same program gives the same bytes.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	version := flags.String("version", "", "version of the program")
	out := flags.String("out", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *out == "" || flags.NArg() != 1 {
		return fmt.Errorf("arguments %q are invalid: must be --version VERSION --out FILE PROGRAM", args)
	}
	name := flags.Arg(0)
	program, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("read build information of %s: %w", name, err)
	}
	sum := sha256.Sum256(program)
	bill, err := newBill(info, filepath.Base(name), *version, sum[:])
	if err != nil {
		return fmt.Errorf("create bill of %s: %w", name, err)
	}
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return fmt.Errorf("encode bill of %s: %w", name, err)
	}
	if err := os.WriteFile(*out, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write bill of %s: %w", name, err)
	}
	return nil
}

// newBill returns the bill of a program, whose SHA-256 sum is sum.
func newBill(info *buildinfo.BuildInfo, name, version string, sum []byte) (*cyclonedx.BOM, error) {
	program := component(cyclonedx.ComponentTypeApplication, info.Main.Path, version, sum)
	program.BOMRef, program.Name = "program", name
	if folder, isBelow := strings.CutPrefix(info.Path, info.Main.Path+"/"); isBelow {
		program.PackageURL += "#" + folder
	}
	program.Properties = &[]cyclonedx.Property{}
	for _, setting := range info.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "CGO_ENABLED"}, setting.Key) {
			*program.Properties = append(*program.Properties, cyclonedx.Property{Name: "cdx:gomod:build:env:" + setting.Key, Value: setting.Value})
		}
	}
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"), nil)}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		// In go.sum and in programs, a hash is "h1:" and the sum in base64. A module in a local folder has none.
		encoded, found := strings.CutPrefix(module.Sum, "h1:")
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !found || len(sum) != sha256.Size {
			return nil, fmt.Errorf("module %s %s: hash %q is invalid: must be h1: and a SHA-256 sum in base64", module.Path, module.Version, module.Sum)
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, module.Path, module.Version, sum))
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	refs := make([]string, 0, len(components))
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{Component: &program}
	bill.Components = &components
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bill, nil
}

// component returns the component of a module with a SHA-256 sum, which may be nil.
func component(kind cyclonedx.ComponentType, module, version string, sum []byte) cyclonedx.Component {
	namespace, name := path.Split(module)
	url := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, "").ToString()
	made := cyclonedx.Component{BOMRef: url, Type: kind, Name: module, Version: version, PackageURL: url}
	if sum != nil {
		made.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return made
}
