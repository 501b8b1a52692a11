// Command dist makes the packages of a release: binaries for six systems, deb, rpm, an OCI image, and their checksums. The same commit
// gives the same bytes: everything carries the time of the commit, and nothing the time or place of the build.
//
// It starts the go command and writes to one folder; it reaches no network and installs nothing.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is a system that binaries are made for.
type target struct{ os, arch string }

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// release is what all artifacts are made from.
type release struct {
	root    string // of the tree
	out     string
	version string // "0.3.0", or "0.0.0-dev"
	ldflags string
	time    time.Time // of the commit
	targets []target
}

func main() {
	r := &release{}
	var at int64
	var only string
	flag.StringVar(&r.root, "root", "../..", "the tree")
	flag.StringVar(&r.out, "out", "dist", "folder for the artifacts; what is in it goes")
	flag.StringVar(&r.version, "version", "0.0.0-dev", "version of the release, without v")
	flag.StringVar(&r.ldflags, "ldflags", "-s -w", "flags of the linker")
	flag.Int64Var(&at, "time", 0, "time of the commit in seconds")
	flag.StringVar(&only, "only", "", "systems, as os/arch,os/arch; all by default")
	flag.Parse()
	r.time = time.Unix(at, 0).UTC()
	r.targets = slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		return only != "" && !slices.Contains(strings.Split(only, ","), t.os+"/"+t.arch)
	})
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// make writes all artifacts.
func (r *release) make() error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, t := range r.targets {
		began := time.Now()
		if err := r.build(t); err != nil {
			return err
		}
		size, err := os.Stat(r.binary(t))
		if err != nil {
			return err
		}
		fmt.Printf("%-40s %6.1f MiB, %.0f s\n", filepath.Base(r.binary(t)), float64(size.Size())/(1<<20), time.Since(began).Seconds())
	}
	var linux []target
	for _, t := range r.targets {
		if t.os == "linux" {
			linux = append(linux, t)
		}
	}
	for _, t := range linux {
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(t, format); err != nil {
				return err
			}
		}
	}
	if len(linux) > 0 {
		if err := r.image(linux); err != nil {
			return err
		}
	}
	return r.sums()
}

// binary is the file of a target's binary.
func (r *release) binary(t target) string {
	name := fmt.Sprintf("dragoman_%s_%s_%s", r.version, t.os, t.arch)
	if t.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.out, name)
}

func (r *release) build(t target) error {
	out, err := filepath.Abs(r.binary(t))
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", r.ldflags, "-o", out, "./cmd/dragoman")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
	}
	return nil
}

// sums writes SHA256SUMS of all that is there, as sha256sum does.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		sum, err := digest(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}

func digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
