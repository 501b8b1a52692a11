package health

import (
	"encoding/binary"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// GRPC calls grpc.health.v1.Health/Check.
type GRPC struct {
	// Service is the service that is asked for, "" for the server as a whole.
	Service string
	// Authority is who is asked, "" for the cluster's name. An endpoint may have its own.
	Authority string
	// Edit changes the head of the request; nil: nothing does.
	Edit Edit
}

// MaxGRPCAnswer bounds an answer in bytes: a HealthCheckResponse has a few.
const MaxGRPCAnswer = 4 << 10

// serving is HealthCheckResponse.ServingStatus.SERVING.
const serving = 1

// grpcJudge is the judge of gRPC.
type grpcJudge struct {
	s      *session
	got    []byte
	status string // grpc-status, "" if there was none
	bad    bool
}

func (j *grpcJudge) two() bool { return true }

func (j *grpcJudge) request(h *http.HeaderMap, secure bool, inf *stream.Info) []byte {
	c := j.s.c
	o := c.Options.GRPC
	h.AddConst(http.Method, "POST")
	h.AddConst(http.Scheme, scheme(secure))
	h.AddConst(http.Path, "/grpc.health.v1.Health/Check")
	h.AddConst(http.Authority, authority(j.s, o.Authority))
	h.AddConst(http.TE, "trailers")
	h.AddConst(http.GRPCTimeout, h.Arena().String(grpcTimeout(c.Options.Timeout)))
	h.AddConst(http.ContentType, "application/grpc")
	h.AddConst(http.UserAgent, agent)
	if o.Edit != nil {
		o.Edit(c.Worker, h, inf)
	}
	return grpcMessage(o.Service)
}

// grpcMessage frames a HealthCheckRequest.
func grpcMessage(service string) []byte {
	b := make([]byte, 5, 5+len(service)+6)
	if service != "" {
		b = protowire.AppendTag(b, 1, protowire.BytesType)
		b = protowire.AppendString(b, service)
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-5))
	return b
}

// grpcTimeout is the header grpc-timeout: at most 8 digits.
func grpcTimeout(d time.Duration) string {
	n := int64(d / time.Millisecond)
	for _, unit := range []struct {
		name string
		next int64
	}{{"m", 1000}, {"S", 60}, {"M", 60}} {
		if n < 1e8 {
			return strconv.FormatInt(n, 10) + unit.name
		}
		n /= unit.next
	}
	return strconv.FormatInt(min(n, 1e8-1), 10) + "H"
}

func (j *grpcJudge) head(h *http.HeaderMap, end bool) (known bool) {
	j.got, j.bad = j.got[:0], false
	j.status, _ = h.GetName("grpc-status")
	switch {
	case end:
		j.bad = true // the status of an answer without a message is none of a check that went well
	case h.StatusCode() != 200, !isGRPC(h.Get(http.ContentType)):
		j.bad = true
		return true
	}
	return end
}

func isGRPC(contentType string) bool {
	const want = "application/grpc"
	return len(contentType) >= len(want) && contentType[:len(want)] == want && (len(contentType) == len(want) || contentType[len(want)] == '+')
}

func (j *grpcJudge) body(b *buffer.Buffer) (known bool) {
	if len(j.got)+b.Len() > MaxGRPCAnswer {
		j.bad = true
		return true
	}
	j.got = b.AppendTo(j.got)
	j.status = "" // one that comes before the end does not count
	return false
}

func (j *grpcJudge) trailers(h *http.HeaderMap) { j.status, _ = h.GetName("grpc-status") }

func (j *grpcJudge) outcome() verdict {
	return verdict{ok: !j.bad && j.status == "0" && servingStatus(j.got) == serving}
}

// servingStatus reads the one message that an answer has; -1 if that is not what it is.
func servingStatus(b []byte) int64 {
	if len(b) < 5 || b[0] != 0 || uint64(binary.BigEndian.Uint32(b[1:])) != uint64(len(b)-5) {
		return -1
	}
	status := int64(0)
	for b = b[5:]; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return -1
		}
		b = b[n:]
		if num == 1 && typ == protowire.VarintType {
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return -1
			}
			status, b = int64(v), b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return -1
		}
		b = b[n:]
	}
	return status
}
