package standard_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/internal/gap"
)

// What an extension says of fields is said of fields that there are: a row with a mistake would refuse nothing.
func TestRowsAreFields(t *testing.T) {
	check := func(i *ext.Info, messages []string) {
		for _, rows := range [][]string{i.Refused, i.Ignored} {
			for _, g := range gap.ForExtension(messages, rows) {
				for _, p := range g.Problems() {
					t.Errorf("%s: %s", i.Name, p)
				}
			}
		}
	}
	for _, s := range standard.All() {
		for i := range s.HTTPFilters {
			check(&s.HTTPFilters[i].Info, s.HTTPFilters[i].Messages())
		}
		for i := range s.NetworkFilters {
			check(&s.NetworkFilters[i].Info, s.NetworkFilters[i].TypeURLs)
		}
		for i := range s.ListenerFilters {
			check(&s.ListenerFilters[i].Info, s.ListenerFilters[i].TypeURLs)
		}
	}
}
