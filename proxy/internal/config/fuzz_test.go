package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
)

// FuzzLoad reads arbitrary text in both forms. What is taken must be printed to something that is taken again and means
// the same; what is refused must be refused with a place.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/bootstraps/*", "testdata/refused/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, c := range facts {
		f.Add([]byte("{" + c.in + "}"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8192 {
			return
		}
		for _, name := range []string{"f.json", "f.yaml"} {
			var b, again bootstrapv3.Bootstrap
			pos, err := config.Parse(name, data, &b, config.Options{})
			if err != nil {
				var errs *config.Errors
				if errors.As(err, &errs) {
					for _, x := range errs.List {
						if x.Line < 1 || x.Col < 1 {
							t.Errorf("%s: no place in %v", name, x)
						}
						pos.Lookup(x.Path)
					}
				}
				continue
			}
			printed := config.NewPrinter(nil).Append(nil, &b, 0)
			if _, err := config.Parse("again.json", printed, &again, config.Options{SkipValidation: true}); err != nil {
				t.Errorf("%s: %v\n%s", name, err, printed)
			} else if again2 := config.NewPrinter(nil).Append(nil, &again, 0); string(printed) != string(again2) {
				t.Errorf("%s: %s\nbecame\n%s", name, printed, again2)
			}
		}
	})
}
