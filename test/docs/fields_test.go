package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/internal/gap"
)

const fieldsFolder = "docs/fields"

// enginePages are the messages that belong to no folder under extensions/, by the names of their pages.
var enginePages = map[string][]string{
	"bootstrap": {"envoy.config.bootstrap.v3.Bootstrap"},
	"listener":  {"envoy.config.listener.v3.Listener"},
	"cluster":   {"envoy.config.cluster.v3.Cluster"},
	"endpoint":  {"envoy.config.endpoint.v3.ClusterLoadAssignment"},
	"route":     {"envoy.config.route.v3.RouteConfiguration"},
	"access_log": {"envoy.config.accesslog.v3.AccessLog", "envoy.extensions.access_loggers.file.v3.FileAccessLog",
		"envoy.extensions.access_loggers.stream.v3.StdoutAccessLog"},
	"overload":                {"envoy.config.overload.v3.OverloadManager"},
	"http_connection_manager": {"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"},
	"tcp_proxy":               {"envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"},
	"router":                  {"envoy.extensions.filters.http.router.v3.Router"},
	"tls":                     {"envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "envoy.extensions.transport_sockets.tls.v3.Secret"},
	"http_protocol_options":   {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions"},
	"core":                    {"envoy.config.core.v3.Address", "envoy.config.core.v3.ConfigSource", "envoy.config.core.v3.DataSource", "envoy.config.core.v3.BindConfig", "envoy.config.core.v3.Http1ProtocolOptions", "envoy.config.core.v3.Http2ProtocolOptions", "envoy.config.core.v3.HttpProtocolOptions", "envoy.config.core.v3.SubstitutionFormatString", "envoy.config.core.v3.HealthCheck", "envoy.config.core.v3.HeaderValueOption"},
}

// TestFields keeps the tables of fields as the descriptors and the code are.
func TestFields(t *testing.T) {
	pages := maps.Clone(enginePages)
	titles := map[string]string{}
	add := func(kind string, i ext.Info, messages []string) {
		name := kind + "_" + short(i.Name) // both kinds may have one of a name
		pages[name], titles[name] = messages, i.Name
	}
	for _, s := range standard.All() {
		for _, f := range s.HTTPFilters {
			add("http", f.Info, f.Messages())
		}
		for _, f := range s.NetworkFilters {
			add("network", f.Info, f.TypeURLs)
		}
		for _, f := range s.ListenerFilters {
			add("listener", f.Info, f.TypeURLs)
		}
	}
	r := newReference()
	index := "# Fields\n\n" + generated + "All fields of the messages that configure Dragoman, and whether they work. In one list: [compat.md](../compat.md).\n\n| page | of |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		text, ok := r.page(name, titles[name], pages[name])
		if !ok {
			continue
		}
		page(t, path.Join(fieldsFolder, name+".md"), text)
		of := titles[name]
		if of == "" {
			of = strings.Join(pages[name], ", ")
		}
		index += fmt.Sprintf("| [%s](%s.md) | %s |\n", name, name, of)
	}
	page(t, path.Join(fieldsFolder, "README.md"), index)
	files, err := filepath.Glob(filepath.Join(root, fieldsFolder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".md")
		if name == "README" || pages[name] != nil {
			continue
		}
		if *update {
			_ = os.Remove(f)
		} else {
			t.Errorf("%s/%s.md is of nothing that there is: make docs removes it", fieldsFolder, name)
		}
	}
}

// reference knows what is said of each field.
type reference struct {
	rows map[protoreflect.FullName][]gap.Row // by the field's own full name
}

func newReference() *reference {
	r := &reference{rows: map[protoreflect.FullName][]gap.Row{}}
	for _, row := range refused() {
		if fd := fieldOf(row); fd != nil {
			r.rows[fd.FullName()] = append(r.rows[fd.FullName()], row)
		}
	}
	return r
}

// fieldOf is the field that a row's path ends at; nil if the message is not linked in.
func fieldOf(row gap.Row) protoreflect.FieldDescriptor {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(row.Message))
	if err != nil {
		return nil
	}
	fd, err := gap.Lookup(mt.Descriptor(), row.Field)
	if err != nil {
		return nil
	}
	return fd
}

// page is the text of a page about some messages and those of their packages that they hold. ok is false if nothing has fields.
func (r *reference) page(name, title string, messages []string) (text string, ok bool) {
	if title == "" {
		title = name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s", title, generated)
	seen := map[protoreflect.FullName]bool{}
	var queue []protoreflect.MessageDescriptor
	packages := map[protoreflect.FullName]bool{}
	for _, m := range messages {
		mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(m))
		if err != nil || seen[mt.Descriptor().FullName()] {
			continue
		}
		seen[mt.Descriptor().FullName()] = true
		packages[mt.Descriptor().ParentFile().Package()] = true
		queue = append(queue, mt.Descriptor())
	}
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]
		if d.Fields().Len() == 0 {
			continue
		}
		ok = true
		fmt.Fprintf(&b, "## %s\n\n| field | type | | |\n|---|---|---|---|\n", d.FullName())
		for i := range d.Fields().Len() {
			fd := d.Fields().Get(i)
			verdict, note := r.verdict(fd)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", fd.Name(), typeOf(fd, packages), verdict, cell(note))
			inner := held(fd)
			if verdict != "no" && inner != nil && packages[inner.ParentFile().Package()] && !seen[inner.FullName()] {
				seen[inner.FullName()] = true
				queue = append(queue, inner)
			}
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), ok
}

// verdict says whether a field works.
func (r *reference) verdict(fd protoreflect.FieldDescriptor) (verdict, note string) {
	verdict = "yes"
	var notes []string
	if o, ok := fd.Options().(*descriptorpb.FieldOptions); ok && o.GetDeprecated() {
		notes = append(notes, "deprecated")
	}
	for _, row := range r.rows[fd.FullName()] {
		in := ""
		if protoreflect.FullName(row.Message) != fd.ContainingMessage().FullName() {
			in = fmt.Sprintf("%s of %s", row.Field, short(row.Message))
		}
		switch {
		case row.Ignored:
			verdict = "no effect"
			notes = append(notes, row.Note)
		case row.Value != "":
			verdict = "partly"
			notes = append(notes, "not `"+row.Value+"`")
		case row.Note != "":
			verdict = "partly"
			notes = append(notes, "not "+row.Note)
		case in != "" && verdict == "yes" && shared(fd, row):
			verdict = "partly"
			notes = append(notes, "not as `"+in+"`")
		default:
			verdict = "no"
		}
	}
	return verdict, strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
}

// shared tells that a field's message is one that others than the row's own hold too.
func shared(fd protoreflect.FieldDescriptor, row gap.Row) bool {
	return fd.ParentFile().Package() != protoreflect.FullName(row.Message).Parent()
}

func held(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if fd.IsMap() {
		fd = fd.MapValue()
	}
	return fd.Message()
}

// typeOf names a field's type; a message that is on the page too is a link.
func typeOf(fd protoreflect.FieldDescriptor, packages map[protoreflect.FullName]bool) string {
	one := func(fd protoreflect.FieldDescriptor) string {
		switch {
		case fd.Enum() != nil:
			return "enum " + string(fd.Enum().Name())
		case fd.Message() != nil:
			m := fd.Message()
			if packages[m.ParentFile().Package()] {
				return fmt.Sprintf("[%s](#%s)", m.Name(), anchor(string(m.FullName())))
			}
			if m.ParentFile().Package() == "google.protobuf" {
				return string(m.Name())
			}
			return string(m.FullName())
		}
		return fd.Kind().String()
	}
	switch {
	case fd.IsMap():
		return "map of " + one(fd.MapKey()) + " to " + one(fd.MapValue())
	case fd.IsList():
		return "list of " + one(fd)
	}
	return one(fd)
}

func anchor(heading string) string { return strings.ToLower(strings.ReplaceAll(heading, ".", "")) }
