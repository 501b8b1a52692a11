package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// fake is a release whose binaries are a few bytes.
func fake(t *testing.T) *release {
	t.Helper()
	r := &release{root: "../..", out: t.TempDir(), version: "1.2.3-rc1", time: time.Unix(1700000000, 0).UTC(),
		targets: []target{{"linux", "amd64"}, {"linux", "arm64"}}}
	for _, x := range r.targets {
		if err := os.WriteFile(r.binary(x), []byte("binary for "+x.arch), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// An image's blobs have the digests by which they are named, and its layer has what a container needs.
func TestImage(t *testing.T) {
	r := fake(t)
	if err := r.image(r.targets); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.out, "dragoman_1.2.3-rc1_oci.tar")
	images := unpackImage(t, file)
	if len(images) != 2 {
		t.Fatalf("%d images", len(images))
	}
	for arch, layer := range images {
		got := map[string]string{}
		each(t, bytes.NewReader(layer), func(h *tar.Header, data []byte) {
			got[h.Name] = fmt.Sprintf("%o %s%s", h.Mode, h.Linkname, firstLine(data))
			if !h.ModTime.Equal(r.time) || h.Uid != 0 {
				t.Errorf("%s: %s, owner %d", h.Name, h.ModTime, h.Uid)
			}
		})
		for name, want := range map[string]string{
			"usr/local/bin/dragoman": "755 binary for " + arch, "usr/local/bin/envoy": "777 dragoman", "tmp/": "1777 ",
			"etc/passwd": "644 root:x:0:0:root:/:/sbin/nologin",
		} {
			if got[name] != want {
				t.Errorf("%s: %q, want %q", name, got[name], want)
			}
		}
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.image(r.targets); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(file); !bytes.Equal(first, again) {
		t.Error("the second image differs")
	}
}

func TestPackagesAreTheSameTwice(t *testing.T) {
	r := fake(t)
	var sums []string
	for range 2 {
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(r.targets[0], format); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.sums(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(b))
		_ = os.Remove(filepath.Join(r.out, "SHA256SUMS"))
	}
	if sums[0] != sums[1] || strings.Count(sums[0], "\n") != 4 || !strings.Contains(sums[0], "dragoman_1.2.3~rc1-1_amd64.deb") {
		t.Errorf("%s\n%s", sums[0], sums[1])
	}
}

// The rest is about what `make dist` has made: $DIST is the folder.
func made(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("DIST")
	if dir == "" {
		t.Skip("$DIST names no folder of artifacts")
	}
	found, _ := filepath.Glob(filepath.Join(dir, pattern))
	if len(found) != 1 {
		t.Fatalf("%s: %v", pattern, found)
	}
	return found[0]
}

// root is a folder that packages are installed into: a shell for their scripts, and nothing else.
func root(t *testing.T, tool string) string {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil || os.Getuid() != 0 {
		t.Skipf("needs %s and root", tool)
	}
	dir := t.TempDir()
	out, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"/bin/sh"}
	for _, f := range strings.Fields(string(out)) {
		if strings.HasPrefix(f, "/") {
			files = append(files, f)
		}
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestDeb(t *testing.T) {
	deb := made(t, "*_"+runtime.GOARCH+".deb")
	dir := root(t, "dpkg")
	for _, d := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "dpkg", "--root="+dir, "-i", deb)
	if got := command(t, "dpkg-query", "--admindir="+dir+"/var/lib/dpkg", "-W", "-f", "${Package} ${Status} ${Conffiles}", "dragoman"); !strings.Contains(got,
		"dragoman install ok installed") || !strings.Contains(got, "/etc/dragoman/dragoman.yaml") {
		t.Error(got)
	}
	installed(t, dir)
	command(t, "dpkg", "--root="+dir, "-r", "dragoman")
	removed(t, dir)
}

func TestRPM(t *testing.T) {
	rpm := made(t, "*-1."+map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]+".rpm")
	dir := root(t, "rpm")
	command(t, "rpm", "--root="+dir, "--initdb")
	// Debian's rpm knows no installed packages, hence no /bin/sh that the scripts ask for.
	command(t, "rpm", "--root="+dir, "--nodeps", "-i", rpm)
	if got := command(t, "rpm", "--root="+dir, "-V", "--nodeps", "dragoman"); got != "" {
		t.Error(got)
	}
	if got := command(t, "rpm", "--root="+dir, "-qc", "dragoman"); !strings.Contains(got, "/etc/dragoman/dragoman.yaml") {
		t.Error(got)
	}
	installed(t, dir)
	command(t, "rpm", "--root="+dir, "--nodeps", "-e", "dragoman")
	removed(t, dir)
}

// installed checks what both packages have installed.
func installed(t *testing.T, dir string) {
	t.Helper()
	binary := filepath.Join(dir, "usr/bin/dragoman")
	if got := command(t, binary, "version"); !strings.Contains(got, "for Envoy 1.40.0") {
		t.Error(got)
	}
	command(t, "chroot", dir, "/usr/bin/dragoman", "proxy", "--mode", "validate", "-c", "/etc/dragoman/dragoman.yaml")
	units(t, dir)
}

func removed(t *testing.T, dir string) {
	t.Helper()
	for _, f := range []string{"usr/bin/dragoman", "usr/lib/systemd/system/dragoman.service"} {
		if _, err := os.Stat(filepath.Join(dir, f)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", f)
		}
	}
}

// units has systemd check the units, with the binary where it is here.
func units(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("no systemd-analyze: the units are not checked")
		return
	}
	copies := t.TempDir()
	var files []string
	for _, n := range []string{"dragoman.service", "dragoman.socket"} {
		b, err := os.ReadFile(filepath.Join(dir, "usr/lib/systemd/system", n))
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.ReplaceAll(b, []byte("/usr/bin/dragoman"), []byte(filepath.Join(dir, "usr/bin/dragoman")))
		files = append(files, filepath.Join(copies, n))
		if err := os.WriteFile(filepath.Join(copies, n), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out := command(t, "systemd-analyze", append([]string{"verify", "--man=no"}, files...)...); strings.Contains(out, copies) {
		t.Error(out)
	}
}

// TestSocketActivation starts the binary as systemd would: the socket is open before, and the first connection starts it.
func TestSocketActivation(t *testing.T) {
	binary := made(t, "*_linux_"+runtime.GOARCH)
	activate, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip(err)
	}
	// A port of the loopback that was free a moment ago may be somebody's by now: an address of this process's own is not.
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, 1+pid&127)
	const port = 8080
	boot, err := os.ReadFile("../../packaging/dragoman.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dragoman.yaml")
	text := strings.NewReplacer("address: 127.0.0.1, port_value: 10000", fmt.Sprintf("address: %s, port_value: %d", host, port), "port_value: 9901", "port_value: 0").Replace(string(boot))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(activate, "-l", fmt.Sprintf("%s:%d", host, port), binary, "proxy", "-l", "error", "-c", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	client := &http.Client{Timeout: 20 * time.Second}
	var p *http.Response
	for end := time.Now().Add(20 * time.Second); ; {
		if p, err = client.Get(fmt.Sprintf("http://%s:%d/", host, port)); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Body.Close()
	if b, _ := io.ReadAll(p.Body); string(b) != "Dragoman runs.\n" {
		t.Errorf("%q", b)
	}
}

// TestContainer runs the image's layer in a chroot, by its entry point.
func TestContainer(t *testing.T) {
	file := made(t, "*_oci.tar")
	layer, ok := unpackImage(t, file)[runtime.GOARCH]
	if !ok || os.Getuid() != 0 {
		t.Skip("needs root, and an image for this machine")
	}
	dir := t.TempDir()
	each(t, bytes.NewReader(layer), func(h *tar.Header, data []byte) {
		at := filepath.Join(dir, h.Name)
		var err error
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(at, os.FileMode(h.Mode).Perm())
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, at)
		default:
			err = os.WriteFile(at, data, os.FileMode(h.Mode).Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	for _, args := range [][]string{{"--version"}, {"--mode", "validate", "-c", "/etc/envoy/envoy.yaml"}} {
		command(t, "chroot", append([]string{"--userspec=101:101", dir, "/usr/local/bin/envoy"}, args...)...)
	}
}

// unpackImage checks every digest of an OCI archive and returns the layers, plain, by architecture.
func unpackImage(t *testing.T, file string) map[string][]byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blobs := map[string][]byte{}
	each(t, f, func(h *tar.Header, data []byte) { blobs[h.Name] = data })
	if string(blobs["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout: %s", blobs["oci-layout"])
	}
	get := func(d descriptor, into any) []byte {
		b := blobs["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if len(b) != d.Size || sum(b) != d.Digest {
			t.Fatalf("%s: %d bytes, want %d", d.Digest, len(b), d.Size)
		}
		if into != nil {
			if err := json.Unmarshal(b, into); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	var top, list index
	if err := json.Unmarshal(blobs["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatal(err, top)
	}
	get(top.Manifests[0], &list)
	out := map[string][]byte{}
	for _, d := range list.Manifests {
		var m manifest
		var c imageConfig
		get(d, &m)
		get(m.Config, &c)
		z, err := gzip.NewReader(bytes.NewReader(get(m.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if c.RootFS.DiffIDs[0] != sum(plain) || c.Architecture != d.Platform.Architecture || c.Config.Entrypoint[0] != "/usr/local/bin/envoy" {
			t.Errorf("%+v", c)
		}
		out[c.Architecture] = plain
	}
	return out
}

func sum(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func each(t *testing.T, r io.Reader, do func(h *tar.Header, data []byte)) {
	t.Helper()
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		do(h, data)
	}
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
