// Command customfilters is a proxy with two HTTP filters of its own: tag, written by callbacks, and authorize, written as
// straight-line code. It is all that a build of one's own needs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/examples/customfilters/authorize"
	"github.com/dragoman-proxy/dragoman/examples/customfilters/tag"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: %s BOOTSTRAP", args[0])
	}
	b, err := proxy.Load(args[1])
	if err != nil {
		return err
	}
	mine := ext.Set{HTTPFilters: []ext.HTTPFilter{tag.Extension, authorize.Extension}}
	p, err := proxy.New(b, proxy.WithExtensions(standard.All()...), proxy.WithExtensions(mine))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return p.Run(ctx)
}
