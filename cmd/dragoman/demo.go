package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// The demonstration's configuration: a bootstrap that takes its routes from a file beside it. Words in double braces are filled in.
var (
	//go:embed demo/bootstrap.yaml
	demoBootstrap string
	//go:embed demo/routes.yaml
	demoRoutes string
)

// The demonstration's ports, if they are free.
const (
	demoPort      = 10000
	demoAdminPort = 9901
)

func demoCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "demo", Example: "  dragoman demo\n  dragoman demo --dir my-demo", Short: "Run a proxy with two small upstreams and a configuration to play with", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return demo(ctx, c.OutOrStdout(), dir, demoPort, demoAdminPort)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "folder for the configuration (a temporary one by default)")
	return c
}

// demo serves until ctx ends. A port that is taken is replaced by a free one.
func demo(ctx context.Context, out io.Writer, dir string, port, adminPort int) error {
	if dir == "" {
		d, err := os.MkdirTemp("", "dragoman-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(d)
		dir = d
	}
	blue, err := startUpstream(ctx, "blue")
	if err != nil {
		return err
	}
	green, err := startUpstream(ctx, "green")
	if err != nil {
		return err
	}
	words := map[string]string{
		"dir": dir, "port": fmt.Sprint(freePort(port)), "admin": fmt.Sprint(freePort(adminPort)), "blue": blue, "green": green,
	}
	file := filepath.Join(dir, "bootstrap.yaml")
	if err := writeDemo(dir, words); err != nil {
		return err
	}
	l := log.New(log.Config{Output: os.Stderr, Level: log.Warning})
	l.SetLevel("main", log.Error) // its warnings are for those who run it for others
	b, err := proxy.Load(file)
	if err != nil {
		return err
	}
	p, err := proxy.New(b, proxy.WithConcurrency(1), proxy.WithExtensions(standard.All()...), proxy.WithLog(l),
		proxy.WithOptions(proxy.Options{DrainTime: 5 * time.Second, FileFlushInterval: time.Second, Env: os.LookupEnv}))
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-p.Ready():
			fmt.Fprint(out, fill(demoText, words))
		case <-ctx.Done():
		}
	}()
	return p.Run(ctx)
}

const demoText = `
Dragoman serves on http://127.0.0.1:{{port}}, its admin interface on http://127.0.0.1:{{admin}}

  curl -i http://127.0.0.1:{{port}}/              two upstreams take turns
  curl    http://127.0.0.1:{{port}}/blue          only the blue one
  curl -i http://127.0.0.1:{{port}}/hello         an answer of the proxy itself

  curl http://127.0.0.1:{{admin}}/ready
  curl http://127.0.0.1:{{admin}}/clusters
  curl 'http://127.0.0.1:{{admin}}/stats?usedonly&filter=^http.demo'
  curl http://127.0.0.1:{{admin}}/config_dump

Change the routes while it serves: edit the file, then move it into place.

  cd {{dir}}
  sed 's/Hello/Good day/' routes.yaml > new.yaml && mv new.yaml routes.yaml
  curl http://127.0.0.1:{{port}}/hello

The access log is {{dir}}/access.log; lines are written within a second. Ctrl-C ends the proxy.
`

func fill(text string, words map[string]string) string {
	for k, v := range words {
		text = strings.ReplaceAll(text, "{{"+k+"}}", v)
	}
	return text
}

// writeDemo writes the configuration into dir.
func writeDemo(dir string, words map[string]string) error {
	for name, text := range map[string]string{"bootstrap.yaml": demoBootstrap, "routes.yaml": demoRoutes} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fill(text, words)), 0o644); err != nil { //nolint:gosec // the user is to edit it
			return err
		}
	}
	return nil
}

// freePort returns port, or a free one if it is taken.
func freePort(port int) int {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return port
		}
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startUpstream serves answers that say who gave them and what came, until ctx ends; it returns the port.
func startUpstream(ctx context.Context, name string) (port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		_ = enc.Encode(map[string]any{"upstream": name, "method": r.Method, "path": r.URL.RequestURI(), "host": r.Host, "headers": r.Header})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b.Bytes())
	})}
	go func() { _ = s.Serve(l) }()
	context.AfterFunc(ctx, func() { _ = s.Close() })
	_, port, err = net.SplitHostPort(l.Addr().String())
	return port, err
}
