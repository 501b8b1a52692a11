package health

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// Log takes the events of health checks, a line of JSON each.
type Log interface {
	// Line writes a line, which ends with a newline. It does not keep b.
	Line(b []byte)
	Release()
}

// events writes what happens to hosts, as data.core.v3.HealthCheckEvent in Envoy's JSON.
type events struct {
	logs []Log
	kind string // HTTP, GRPC or TCP
	buf  bytes.Buffer
}

var causes = [...]string{byAnswer: "ACTIVE", byRequest: "PASSIVE", noAnswer: "NETWORK", tooLate: "NETWORK_TIMEOUT"}

func (o *Options) kind() string {
	switch {
	case o.TCP != nil:
		return "TCP"
	case o.GRPC != nil:
		return "GRPC"
	}
	return "HTTP"
}

// happening is one event. place is where the field stands in the message.
type happening struct {
	name, body string
	place      place
}

type place uint8

const (
	beforeTime place = iota
	afterTime
	last
)

// added tells that a host became healthy.
func (s *session) added() {
	s.log(happening{"add_healthy_event", `{"first_check":` + strconv.FormatBool(s.first) + "}", beforeTime})
}

// ejected tells that it became unhealthy.
func (s *session) ejected(why cause, status int) {
	s.log(happening{"eject_unhealthy_event", `{"failure_type":"` + causes[why] + `","http_status_code":` + strconv.Itoa(status) + "}", beforeTime})
}

// notWell tells of any failure.
func (s *session) notWell(why cause, status int) {
	s.log(happening{"health_check_failure_event", `{"failure_type":"` + causes[why] + `","first_check":` + strconv.FormatBool(s.first) +
		`,"http_status_code":` + strconv.Itoa(status) + "}", afterTime})
}

// isWell tells of any success.
func (s *session) isWell() { s.log(happening{"successful_health_check_event", "{}", last}) }

// degradedNow tells that a host became degraded, or is so no longer.
func (s *session) degradedNow(is bool) {
	name := "no_longer_degraded_host"
	if is {
		name = "degraded_healthy_host"
	}
	s.log(happening{name, "{}", afterTime})
}

func (s *session) log(x happening) {
	e := &s.c.events
	if len(e.logs) == 0 {
		return
	}
	b := &e.buf
	b.Reset()
	b.WriteString(`{"health_checker_type":"` + e.kind + `","host":`)
	e.address(s.h)
	b.WriteString(`,"cluster_name":`)
	e.value(s.c.Cluster)
	e.put(x, beforeTime)
	b.WriteString(`,"timestamp":"` + timestamp(s.c.Worker.Wall()) + `"`)
	e.put(x, afterTime)
	if m := s.h.Metadata(); m != nil {
		b.WriteString(`,"metadata":{"filter_metadata":`)
		e.value(m.Spaces)
		b.WriteString(`,"typed_filter_metadata":{}}`)
	}
	l := s.h.Locality()
	if l == nil {
		l = &host.Locality{}
	}
	b.WriteString(`,"locality":{"region":`)
	e.value(l.Region)
	b.WriteString(`,"zone":`)
	e.value(l.Zone)
	b.WriteString(`,"sub_zone":`)
	e.value(l.SubZone)
	b.WriteByte('}')
	e.put(x, last)
	b.WriteString("}\n")
	for _, log := range e.logs {
		log.Line(b.Bytes())
	}
}

func (e *events) put(x happening, at place) {
	if x.place == at {
		e.buf.WriteString(`,"` + x.name + `":` + x.body)
	}
}

func (e *events) address(h *host.Host) {
	a := h.Current()
	if !a.IP.IsValid() {
		e.buf.WriteString(`{"pipe":{"path":`)
		e.value(a.Path)
		e.buf.WriteString(`,"mode":0}}`)
		return
	}
	e.buf.WriteString(`{"socket_address":{"protocol":"TCP","address":`)
	e.value(a.IP.Addr().String())
	e.buf.WriteString(`,"port_value":` + strconv.Itoa(int(a.IP.Port())) + `,"resolver_name":"","ipv4_compat":false,"network_namespace_filepath":""}}`)
}

// value writes a plain value. There are none that JSON does not have: metadata came as JSON.
func (e *events) value(v any) {
	enc := json.NewEncoder(&e.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		e.buf.WriteString("null")
		return
	}
	e.buf.Truncate(e.buf.Len() - 1) // the encoder's newline
}

// timestamp is a time as protobuf's JSON has it, to the millisecond.
func timestamp(wall int64) string {
	t := time.Unix(0, wall).UTC()
	if t.Nanosecond()/1e6 == 0 {
		return t.Format("2006-01-02T15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}
