package server

import (
	"strings"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

const (
	typePrefix  = "type.googleapis.com/"
	adminPrefix = typePrefix + "envoy.admin.v3."
)

// serveConfigDump answers /config_dump. The page is made element by element: a proxy with ten thousand clusters has 30 MB of it.
func (s *Server) serveConfigDump(r *admin.Request, done func(*admin.Response)) {
	refuse := func(code int, text string) {
		done(&admin.Response{Code: code, ContentType: "text/plain", Body: admin.Text(text)})
	}
	d := &dumpPage{s: s, p: config.NewPrinter(nil), want: func(string) bool { return true }}
	d.p.Redact = true
	if n := r.Query.Get("name_regex"); n != "" {
		re, err := route.CompileRegex(n, true)
		if err != nil {
			refuse(400, "INVALID_ARGUMENT: Error while parsing name_regex from "+n+": "+err.Error())
			return
		}
		d.want = re.MatchString
	}
	maskText := r.Query.Get("mask")
	if maskText != "" {
		d.mask = parseMask(maskText)
	}
	sections := s.dumpSections(d, r.Query.Has("include_eds"))
	if name := r.Query.Get("resource"); name != "" {
		d.serveResource(name, maskText, sections, refuse, done)
		return
	}
	if d.mask != nil {
		kept := sections[:0]
		for _, x := range sections {
			if d.mask.valid(x.message.ProtoReflect().Descriptor(), nil) {
				kept = append(kept, x)
			}
		}
		if sections = kept; len(sections) == 0 {
			refuse(400, "FieldMask "+maskText+" could not be successfully applied to any configs.")
			return
		}
	}
	done(&admin.Response{Code: 200, ContentType: admin.JSON, Body: s.page(func(w *admin.Writer) { d.write(w, sections) })})
}

// serveResource answers with one list only.
func (d *dumpPage) serveResource(name, maskText string, sections []dumpSection, refuse func(int, string), done func(*admin.Response)) {
	for i := range sections {
		x := &sections[i]
		for k := range x.lists {
			l := &x.lists[k]
			if l.field != name {
				continue
			}
			if d.mask != nil && !d.mask.valid(l.element.ProtoReflect().Descriptor(), l.inner.ProtoReflect().Descriptor()) {
				refuse(400, "FieldMask paths: \""+maskText+"\"\n could not be successfully used.")
				return
			}
			done(&admin.Response{Code: 200, ContentType: admin.JSON, Body: d.s.page(func(w *admin.Writer) { d.writeList(w, l) })})
			return
		}
		if f := x.message.ProtoReflect().Descriptor().Fields().ByTextName(name); f != nil && !f.IsList() {
			refuse(400, name+" is not a repeated field. Use ?mask="+name+" to get only this field")
			return
		}
	}
	refuse(404, name+" not found in config dump")
}

// dumpPage is one answer to /config_dump.
type dumpPage struct {
	s    *Server
	p    *config.Printer
	mask *fieldMask // nil: everything
	want func(name string) bool
}

// dumpSection is one message of the dump's list: version_info, then lists of resources; or the bootstrap.
type dumpSection struct {
	message   proto.Message // its type
	version   string
	lists     []dumpList
	bootstrap bool
}

// dumpList is a list of resources.
type dumpList struct {
	field          string
	element, inner proto.Message // types of an element, and of the Any in it
	each           func(yield func(proto.Message) bool)
}

func typeURL(m proto.Message) string {
	return typePrefix + string(m.ProtoReflect().Descriptor().FullName())
}

// write writes the whole page.
func (d *dumpPage) write(w *admin.Writer, sections []dumpSection) {
	w.Text("{\n \"configs\": [")
	for i := range sections {
		if i > 0 {
			w.Text(",")
		}
		w.Text("\n  ")
		if sections[i].bootstrap {
			if !d.writeBootstrap(w) {
				return
			}
			continue
		}
		if !d.writeSection(w, &sections[i]) {
			return
		}
	}
	w.Text("\n ]\n}\n")
}

func (d *dumpPage) writeSection(w *admin.Writer, x *dumpSection) bool {
	w.Text("{\n   \"@type\": \"" + typeURL(x.message) + "\"")
	if x.version != "" && d.mask.selects("version_info") {
		w.Text(",\n   \"version_info\": ")
		w.Buf = config.AppendString(w.Buf, x.version)
	}
	for i := range x.lists {
		l := &x.lists[i]
		if !d.mask.selects(l.field) {
			continue
		}
		n := 0
		for m := range l.each {
			if m != nil {
				if n == 0 {
					w.Text(",\n   \"" + l.field + "\": [\n    ")
				} else {
					w.Text(",\n    ")
				}
				n++
				w.Buf = d.p.Append(w.Buf, m, 4)
			}
			if !w.Item() {
				return false
			}
		}
		if n > 0 {
			w.Text("\n   ]")
		}
	}
	w.Text("\n  }")
	return w.Item()
}

// writeList writes a page of one list.
func (d *dumpPage) writeList(w *admin.Writer, l *dumpList) {
	n := 0
	for m := range l.each {
		if m != nil {
			if d.mask != nil {
				d.mask.trim(m.ProtoReflect())
			}
			raw, err := proto.Marshal(m)
			if err != nil {
				continue
			}
			if n == 0 {
				w.Text("{\n \"configs\": [\n  ")
			} else {
				w.Text(",\n  ")
			}
			n++
			w.Buf = d.p.AppendAny(w.Buf, typeURL(m), raw, 2)
		}
		if !w.Item() {
			return
		}
	}
	if n == 0 {
		w.Text("{}\n")
		return
	}
	w.Text("\n ]\n}\n")
}

// writeBootstrap writes the bootstrap: the kept rest of it, with its clusters and listeners put in one by one.
func (d *dumpPage) writeBootstrap(w *admin.Writer) bool {
	b := &bootstrapv3.Bootstrap{}
	raw, err := config.Decompress(nil, d.s.dump.boot)
	if err == nil {
		err = proto.Unmarshal(raw, b)
	}
	if err != nil {
		w.Text("{}")
		return true
	}
	m := &adminv3.BootstrapConfigDump{Bootstrap: b, LastUpdated: timestamppb.New(timestamp(d.s.dump.at))}
	if d.mask != nil {
		d.mask.trim(m.ProtoReflect())
	}
	const mark = "\x01"
	listener, cluster := &listenerv3.Listener{Name: mark}, &clusterv3.Cluster{Name: mark}
	lists := []struct {
		n    int
		name string
		mark proto.Message
		set  func(*bootstrapv3.Bootstrap_StaticResources)
		each func(yield func(proto.Message) bool)
	}{
		{len(d.s.dump.listeners), "listeners", listener, func(r *bootstrapv3.Bootstrap_StaticResources) { r.Listeners = []*listenerv3.Listener{listener} },
			d.s.messages(d.s.dump.listeners, func() proto.Message { return &listenerv3.Listener{} })},
		{len(d.s.dump.clusters), "clusters", cluster, func(r *bootstrapv3.Bootstrap_StaticResources) { r.Clusters = []*clusterv3.Cluster{cluster} },
			d.s.messages(d.s.dump.clusters, func() proto.Message { return &clusterv3.Cluster{} })},
	}
	for i := range lists {
		l := &lists[i]
		if l.n == 0 || !d.mask.selects("bootstrap", "static_resources", l.name) {
			l.n = 0
			continue
		}
		if m.Bootstrap == nil {
			m.Bootstrap = &bootstrapv3.Bootstrap{}
		}
		if m.Bootstrap.StaticResources == nil {
			m.Bootstrap.StaticResources = &bootstrapv3.Bootstrap_StaticResources{}
		}
		l.set(m.Bootstrap.StaticResources)
	}
	if raw, err = proto.Marshal(m); err != nil {
		w.Text("{}")
		return true
	}
	text := string(d.p.AppendAny(nil, typeURL(m), raw, 2))
	const depth = 6
	for i := range lists {
		l := &lists[i]
		if l.n == 0 {
			continue
		}
		before, after, found := strings.Cut(text, string(d.p.Append(nil, l.mark, depth)))
		if !found {
			continue
		}
		w.Text(before)
		text = after
		n := 0
		for x := range l.each {
			if n > 0 {
				w.Text(",\n      ")
			}
			n++
			w.Buf = d.p.Append(w.Buf, x, depth)
			if !w.Item() {
				return false
			}
		}
	}
	w.Text(text)
	return w.Item()
}

// messages yields kept resources in the order of the file.
func (s *Server) messages(list []kept, make func() proto.Message) func(yield func(proto.Message) bool) {
	return func(yield func(proto.Message) bool) {
		for _, k := range list {
			m := make()
			raw, err := s.archive().Get(k.ref)
			if err != nil || proto.Unmarshal(raw, m) != nil {
				continue
			}
			if !yield(m) {
				return
			}
		}
	}
}
