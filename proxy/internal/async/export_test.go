package async

import "github.com/dragoman-proxy/dragoman/api/buffer"

// FeedGRPC gives bytes of an answer, cut as they are, to a stream without a connection.
func FeedGRPC(hd GRPCHandler, limit int, chunks ...[]byte) {
	g := &GRPC{hd: hd, limit: limit, reply: -1}
	var pool buffer.Pool
	for i, c := range chunks {
		var b buffer.Buffer
		b.Init(&pool)
		b.Append(c)
		if !g.closed {
			(*grpcAnswer)(g).OnData(&b, i == len(chunks)-1)
		}
		b.Reset()
	}
}
