package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats register themselves
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const description = `An L4/L7 proxy that takes Envoy's place.
It reads Envoy 1.40's configuration and xDS, and has its admin interface,
statistics, access logs and command line, in one static binary.`

// pack writes a deb or rpm of a binary.
func (r *release) pack(t target, format string) error {
	in := func(name string) string { return filepath.Join(r.root, "packaging", name) }
	file := func(source, target string, mode os.FileMode, kind string) *files.Content {
		return &files.Content{Source: source, Destination: target, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time}}
	}
	const configuration = "config|noreplace"
	// A version such as 0.3.0-rc1 sorts before 0.3.0 with a tilde only.
	version := strings.Replace(r.version, "-", "~", 1)
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "dragoman", Platform: "linux", Arch: t.arch, Version: version, VersionSchema: "none", Release: "1", Section: "net", Priority: "optional",
		Maintainer: "The Dragoman Authors <maintainers@dragoman-proxy.dev>", Vendor: "The Dragoman Authors",
		Homepage: "https://github.com/dragoman-proxy/dragoman", License: "Apache-2.0", Description: description, MTime: r.time,
		Overridables: nfpm.Overridables{
			Contents: files.Contents{
				file(r.binary(t), "/usr/bin/dragoman", 0o755, ""),
				file(in("dragoman.service"), "/usr/lib/systemd/system/dragoman.service", 0o644, ""),
				file(in("dragoman.socket"), "/usr/lib/systemd/system/dragoman.socket", 0o644, ""),
				file(in("dragoman.yaml"), "/etc/dragoman/dragoman.yaml", 0o644, configuration),
				file(in("dragoman.default"), "/etc/default/dragoman", 0o644, configuration),
				file(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/dragoman/copyright", 0o644, ""),
			},
			Scripts: nfpm.Scripts{PostInstall: in("postinstall.sh"), PreRemove: in("preremove.sh")},
			RPM:     nfpm.RPM{BuildHost: "localhost", Summary: "An L4/L7 proxy that takes Envoy's place"},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return fmt.Errorf("%s: %w", format, err)
	}
	p, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.Package(info, &b); err != nil {
		return fmt.Errorf("%s: %w", format, err)
	}
	return os.WriteFile(filepath.Join(r.out, p.ConventionalFileName(info)), b.Bytes(), 0o644)
}
