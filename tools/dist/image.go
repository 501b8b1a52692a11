package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// user is what the image runs as: Envoy's images have the same number.
const user = 101

// descriptor points at a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	Created      string `json:"created"`
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		User       string
		Env        []string
		Entrypoint []string
		Cmd        []string
		Labels     map[string]string
		StopSignal string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []history `json:"history"`
}

type history struct {
	Created   string `json:"created"`
	CreatedBy string `json:"created_by"`
}

// blobs are the contents of an image by their digests, in the order in which they were made.
type blobs struct {
	names []string
	by    map[string][]byte
}

func (b *blobs) add(mediaType string, data []byte) descriptor {
	d := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	if b.by == nil {
		b.by = map[string][]byte{}
	}
	if b.by[d] == nil {
		b.names = append(b.names, d)
	}
	b.by[d] = data
	return descriptor{MediaType: mediaType, Digest: d, Size: len(data)}
}

func (b *blobs) json(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return b.add(mediaType, data), err
}

// image writes the OCI image layout of all architectures, as a tar file.
func (r *release) image(linux []target) error {
	var all blobs
	list := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, t := range linux {
		d, err := r.manifest(&all, t)
		if err != nil {
			return err
		}
		d.Platform = &platform{Architecture: t.arch, OS: t.os}
		list.Manifests = append(list.Manifests, d)
	}
	top, err := all.json(typeIndex, list)
	if err != nil {
		return err
	}
	top.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "dragoman:" + r.version}
	root, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{top}})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := r.tar(&out)
	w.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
	w.file("index.json", root, 0o644)
	w.folder("blobs/", 0o755)
	w.folder("blobs/sha256/", 0o755)
	for _, d := range all.names {
		w.file("blobs/sha256/"+strings.TrimPrefix(d, "sha256:"), all.by[d], 0o644)
	}
	if err := w.close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "dragoman_"+r.version+"_oci.tar"), out.Bytes(), 0o644)
}

// manifest adds the image of one architecture.
func (r *release) manifest(all *blobs, t target) (descriptor, error) {
	plain, err := r.layer(t)
	if err != nil {
		return descriptor{}, err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return descriptor{}, err
	}
	if _, err := z.Write(plain); err != nil {
		return descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, err
	}
	created := r.time.Format("2006-01-02T15:04:05Z")
	c := imageConfig{Created: created, Architecture: t.arch, OS: t.os}
	c.Config.User = fmt.Sprintf("%d:%d", user, user)
	c.Config.Env = []string{"PATH=/usr/local/bin"}
	c.Config.Entrypoint = []string{"/usr/local/bin/envoy"}
	c.Config.Cmd = []string{"-c", "/etc/envoy/envoy.yaml"}
	c.Config.StopSignal = "SIGTERM"
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.title": "dragoman", "org.opencontainers.image.version": r.version,
		"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/dragoman-proxy/dragoman",
	}
	c.RootFS.Type = "layers"
	c.RootFS.DiffIDs = []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}
	c.History = []history{{Created: created, CreatedBy: "make dist"}}
	m := manifest{SchemaVersion: 2, MediaType: typeManifest}
	if m.Config, err = all.json(typeConfig, c); err != nil {
		return descriptor{}, err
	}
	m.Layers = []descriptor{all.add(typeLayer, packed.Bytes())}
	return all.json(typeManifest, m)
}

// layer makes the one layer: the binary by its two names, a configuration, and the little that programs expect of a system.
func (r *release) layer(t target) ([]byte, error) {
	binary, err := os.ReadFile(r.binary(t))
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	boot, err := r.imageBootstrap()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := r.tar(&out)
	for _, d := range []string{"etc/", "etc/envoy/"} {
		w.folder(d, 0o755)
	}
	w.file("etc/envoy/envoy.yaml", boot, 0o644)
	w.file("etc/group", fmt.Appendf(nil, "root:x:0:\nenvoy:x:%d:\n", user), 0o644)
	w.file("etc/passwd", fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nenvoy:x:%d:%d:envoy:/:/sbin/nologin\n", user, user), 0o644)
	w.folder("tmp/", 0o1777)
	for _, d := range []string{"usr/", "usr/local/", "usr/local/bin/"} {
		w.folder(d, 0o755)
	}
	w.file("usr/local/bin/dragoman", binary, 0o755)
	w.link("usr/local/bin/envoy", "dragoman")
	for _, d := range []string{"usr/share/", "usr/share/doc/", "usr/share/doc/dragoman/"} {
		w.folder(d, 0o755)
	}
	w.file("usr/share/doc/dragoman/copyright", license, 0o644)
	return out.Bytes(), w.close()
}

// imageBootstrap is the packages' configuration with its listener on all addresses: the loopback of a container is nobody's.
func (r *release) imageBootstrap() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(r.root, "packaging", "dragoman.yaml"))
	if err != nil {
		return nil, err
	}
	const was, is = "address: 127.0.0.1, port_value: 10000", "address: 0.0.0.0, port_value: 10000"
	if !bytes.Contains(b, []byte(was)) {
		return nil, fmt.Errorf("packaging/dragoman.yaml has no %q", was)
	}
	b = bytes.Replace(b, []byte(was), []byte(is), 1)
	return bytes.Replace(b, []byte("both on the loopback"), []byte("the latter on the loopback"), 1), nil
}

// tarWriter writes entries of root's with the time of the release; the first error stays.
type tarWriter struct {
	w   *tar.Writer
	r   *release
	err error
}

func (r *release) tar(out io.Writer) *tarWriter { return &tarWriter{w: tar.NewWriter(out), r: r} }

func (w *tarWriter) add(h tar.Header, data []byte) {
	if w.err != nil {
		return
	}
	h.ModTime, h.Format, h.Size = w.r.time, tar.FormatPAX, int64(len(data))
	if w.err = w.w.WriteHeader(&h); w.err == nil {
		_, w.err = w.w.Write(data)
	}
}

func (w *tarWriter) file(name string, data []byte, mode int64) {
	w.add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, slices.Clip(data))
}

func (w *tarWriter) folder(name string, mode int64) {
	w.add(tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}, nil)
}

func (w *tarWriter) link(name, target string) {
	w.add(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

func (w *tarWriter) close() error {
	if err := w.w.Close(); w.err == nil {
		w.err = err
	}
	return w.err
}
