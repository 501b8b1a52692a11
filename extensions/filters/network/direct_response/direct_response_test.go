package direct_response_test

import (
	"os"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	directv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/direct_response/v3"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	direct "github.com/dragoman-proxy/dragoman/extensions/filters/network/direct_response"
)

// link is a connection that remembers what was asked of it.
type link struct {
	network.ReadCallbacks
	network.Connection
	info    network.ConnInfo
	written []byte
	closed  int
}

func (l *link) Info() *network.ConnInfo { return &l.info }
func (l *link) Write(data *buffer.Buffer, _ bool) {
	l.written = data.AppendTo(l.written)
	data.Reset()
}

func (l *link) Close(how network.CloseType, _ string) {
	if how == network.FlushWrite {
		l.closed++
	}
}

type callbacks struct {
	network.ReadCallbacks
	l *link
}

func (c callbacks) Connection() network.Connection { return c.l }

func TestAnswersAndCloses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, d := range map[string]*corev3.DataSource{
		"":            nil,
		"inline":      {Specifier: &corev3.DataSource_InlineString{InlineString: "inline"}},
		"bytes":       {Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("bytes")}},
		"from a file": {Specifier: &corev3.DataSource_Filename{Filename: file}},
	} {
		mk, err := direct.Extension.New(&directv3.Config{Response: d}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := &link{}
		if st := mk(nil).OnNewConnection(callbacks{l: l}); st != network.StopIteration {
			t.Errorf("%q: the chain went on", want)
		}
		if string(l.written) != want || l.closed != 1 {
			t.Errorf("wrote %q and closed %d times, want %q and once", l.written, l.closed, want)
		}
	}
}

func TestRefusesAMissingFile(t *testing.T) {
	d := &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: filepath.Join(t.TempDir(), "none")}}
	if _, err := direct.Extension.New(&directv3.Config{Response: d}, nil); err == nil {
		t.Error("a file that does not exist was accepted")
	}
}
