package router

import (
	"errors"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/spill"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

const (
	// fileMemory is how much of a body stays in memory if there may be a file and the configuration says nothing else.
	fileMemory = 256 << 10
	// fileBacklog is how much may wait to be written before the client is held back, pieceSize how much is passed on at a time.
	fileBacklog = 256 << 10
	pieceSize   = spill.ReadSize
)

// keeper keeps a request's body on a route that asks for more than Envoy does (route.RetryBuffer). There is one copy of the body, which
// attempts are fed from at their own pace. When it may not grow, the client is held back; a retry is given up only when an attempt has
// taken all that there is and needs more. owner: worker.
type keeper struct {
	r      *Router
	opt    *route.RetryBuffer
	memory int64 // bytes that may stay in memory, 0: any number
	most   int64 // bytes that may be in the file, 0: there is none
	mem    buffer.Buffer
	file   *spill.File // nil mostly
	piece  buffer.Buffer
	runs   [][]byte

	// Offsets in the body: how long it is so far, where mem begins, how much of it the current attempt has. In between the file's
	// bytes and mem is what is being written.
	total, first, pos int64
	to                *attempt // the current attempt once it takes bytes
	reader            *attempt // who the read under way is for

	above  bool // the upstream does not keep up
	passed bool // the attempt has the end of the request, too
	last   bool // there will be no further attempt: what was passed on is forgotten
	full   bool // the file takes no more, because of why
	why    *abandonment
}

// abandonment is a reason to give a retry up.
type abandonment struct {
	name    string
	counter astats.CounterIndex
}

var (
	overBuffer = abandonment{"buffer_limit", stats.OwnRetryAbandonedBufferLimit}
	overMemory = abandonment{"memory_limit", stats.OwnRetryAbandonedMemoryLimit}
	overFile   = abandonment{"file_limit", stats.OwnRetryAbandonedFileLimit}
	overFiles  = abandonment{"files_limit", stats.OwnRetryAbandonedFilesLimit}
	fileError  = abandonment{"file_error", stats.OwnRetryAbandonedFileError}
)

// own counts what Envoy has no name for.
func (r *Router) own(i astats.CounterIndex) {
	r.w.Stats.Inc(stats.Cluster.Block(r.cluster.Stats(), stats.ClusterDragoman).Counter(i))
}

// abandoned notes that the body cannot be kept for a retry any more: %DYNAMIC_METADATA(dragoman.retry:abandoned)% tells why.
func (r *Router) abandoned(why *abandonment) {
	r.inc(stats.ClusterRetryOrShadowAbandoned)
	r.own(why.counter)
	r.info.Metadata().Set(route.RetryNamespace, "abandoned", why.name)
}

// bufferLimit is how much of the body may be kept for a retry; ok is false if that is not limited.
func (r *Router) bufferLimit() (bytes int, ok bool) {
	if r.rt.HasBufferLimit {
		return r.rt.BufferLimit, true
	}
	bytes = r.cb.BufferLimit()
	return bytes, bytes > 0
}

// keeping gives the request a keeper, for its route asks for one.
func (r *Router) keeping(o *route.RetryBuffer) {
	k := &keeper{r: r, opt: o, memory: o.MemoryBytes}
	if r.cfg.Spill != nil {
		k.most = o.FileBytes
	}
	if k.memory == 0 {
		if limit, ok := r.bufferLimit(); ok {
			k.memory = int64(max(limit, 1))
		}
		if k.most > 0 && (k.memory == 0 || k.memory > fileMemory) {
			k.memory = fileMemory
		}
	}
	k.mem.Init(&r.w.Bufs)
	k.piece.Init(&r.w.Bufs)
	r.keeper = k
}

// add takes body bytes from the client.
func (k *keeper) add(data *buffer.Buffer, end bool) {
	a, n := k.to, int64(data.Len())
	if k.last && !k.takes() {
		data.Reset() // nobody will want it
		return
	}
	if !k.takes() || k.pos < k.total || k.above {
		k.mem.Move(data)
		k.total += n
	} else {
		if !k.last && !k.room(n) {
			k.giveUp()
		}
		k.total += n
		k.pos += n
		if k.last {
			k.first = k.total
		} else {
			k.runs = data.Slices(k.runs[:0], maxRuns)
			for _, run := range k.runs {
				k.mem.Append(run)
			}
			clear(k.runs)
		}
		if n > 0 || end {
			k.send(a, data, end)
		}
	}
	k.goOn()
}

// maxRuns is more than a buffer has.
const maxRuns = 1 << 20

// some tells whether there is a body. k may be nil.
func (k *keeper) some() bool { return k != nil && k.total > 0 }

// takes tells whether the current attempt can be sent body bytes.
func (k *keeper) takes() bool {
	a := k.to
	return a != nil && a.r == k.r && !a.gone && a.enc != nil && !a.tunnel && !a.sentEnd
}

// room tells whether n more bytes may be kept.
func (k *keeper) room(n int64) bool {
	limit := k.memory
	switch {
	case k.most > 0 && !k.full:
		limit = max(limit, k.most)
	case k.full:
		return n == 0 // what is there is all that there will be
	}
	return limit == 0 || k.total+n <= limit
}

// goOn does what can be done after something has changed.
func (k *keeper) goOn() {
	if k.r.done || k.r.keeper != k {
		return
	}
	k.save()
	k.feed()
	if k.r.done || k.r.keeper != k {
		return
	}
	k.forget()
	k.r.hold(k.holds())
}

// holds tells whether the client must wait.
func (k *keeper) holds() bool {
	if k.r.ended {
		return false
	}
	ahead := k.total
	if k.takes() {
		if k.above {
			return true
		}
		ahead -= k.pos
	}
	if k.memory > 0 && ahead >= k.memory {
		return true
	}
	return k.file != nil && !k.last && !k.full && k.file.Pending().Len()+k.mem.Len() >= fileBacklog
}

// begin feeds the body to a new attempt, from its start.
func (k *keeper) begin(a *attempt) {
	k.to, k.pos, k.above, k.passed = a, 0, false, false
	if k.r.retry.left <= 0 {
		k.last = true
	}
	k.goOn()
}

// noRetry: there will be no further attempt.
func (k *keeper) noRetry() {
	k.last = true
	k.goOn()
}

// watermark: the upstream does not keep up, or does again.
func (k *keeper) watermark(a *attempt, above bool) {
	if k.to != a {
		return
	}
	k.above = above
	if above {
		k.r.hold(k.holds())
		return
	}
	k.goOn()
}

// feed passes on what the attempt has not got yet.
func (k *keeper) feed() {
	for k.takes() && !k.above {
		a := k.to
		switch {
		case k.pos < k.total:
			if k.file != nil && k.pos < k.file.Size() {
				if !k.file.Busy() {
					k.reader = a
					k.file.Read(k.pos, int(min(pieceSize, k.file.Size()-k.pos)))
				}
				return
			}
			k.take()
			k.send(a, &k.piece, k.atEnd())
		case k.r.ended && !k.passed:
			k.send(a, &k.piece, k.atEnd())
		default:
			return
		}
	}
}

// atEnd tells whether what is passed on now is the last of the body, and of the request.
func (k *keeper) atEnd() bool { return k.pos == k.total && k.r.ended && k.r.trailers == nil }

// send passes data on to the attempt; end ends the request, and so do trailers if they are here.
func (k *keeper) send(a *attempt, data *buffer.Buffer, end bool) {
	r := k.r
	a.touch()
	if data.Len() > 0 || end {
		a.encode(data, end)
		data.Reset()
	}
	if k.pos < k.total || !r.ended || !k.takes() || k.to != a {
		return
	}
	if !end && r.trailers != nil {
		a.enc.EncodeTrailers(r.trailers)
		end = true
	}
	if end && !a.gone {
		k.passed = true
		a.ended()
	}
}

// take puts the next piece that is in memory into k.piece.
func (k *keeper) take() {
	left := int64(pieceSize)
	off := k.first - k.pos // negative: within mem
	if off > 0 {
		p := k.file.Pending()
		skip := int64(p.Len()) - off
		left -= k.copy(p, skip, left)
		off = 0
	}
	if left == 0 {
		return
	}
	if k.last && off == 0 && k.pos == k.first {
		n := min(left, int64(k.mem.Len()))
		k.piece.MoveN(&k.mem, int(n))
		k.pos += n
		k.first += n
		return
	}
	k.copy(&k.mem, k.pos-k.first, left)
}

// copy adds to k.piece what b has from skip on, at most left bytes.
func (k *keeper) copy(b *buffer.Buffer, skip, left int64) (n int64) {
	k.runs = b.Slices(k.runs[:0], maxRuns)
	defer clear(k.runs)
	for _, run := range k.runs {
		if skip >= int64(len(run)) {
			skip -= int64(len(run))
			continue
		}
		run = run[skip:]
		skip = 0
		run = run[:min(int64(len(run)), left-n)]
		k.piece.Append(run)
		n += int64(len(run))
		if n == left {
			break
		}
	}
	k.pos += n
	return n
}

// save writes to the file what memory should not have.
func (k *keeper) save() {
	if k.most == 0 || k.full || k.last || k.file == nil && k.total <= k.memory {
		return
	}
	if k.file == nil {
		k.file = k.r.cfg.Spill.NewFile(k.r.w, k.opt.FileFolder, k)
		k.r.own(stats.OwnRetryBufferFiles)
	}
	n := k.mem.Len()
	if k.file.Busy() || n < pieceSize || k.first+int64(n) > k.most {
		return
	}
	if err := k.file.Write(&k.mem); err != nil {
		k.full, k.why = true, &overFiles
		return
	}
	k.first += int64(n)
	r := k.r
	r.w.Stats.Add(stats.Cluster.Block(r.cluster.Stats(), stats.ClusterDragoman).Counter(stats.OwnRetryBufferFileBytes), uint64(n))
}

// OnWritten implements spill.User.
func (k *keeper) OnWritten(b *buffer.Buffer, err error) {
	if err != nil {
		k.full, k.why = true, &fileError
		if errors.Is(err, spill.ErrTotal) {
			k.why = &overFiles
		}
		k.first -= int64(b.Len())
		b.Move(&k.mem)
		k.mem.Move(b)
	}
	k.goOn()
}

// OnRead implements spill.User.
func (k *keeper) OnRead(b []byte, err error) {
	a := k.reader
	k.reader = nil
	switch {
	case a != k.to || !k.takes():
	case err != nil:
		k.r.own(stats.OwnRetryBufferReadError)
		k.r.unreadable()
		return
	default:
		k.piece.Borrow(b)
		k.pos += int64(len(b))
		k.send(a, &k.piece, k.atEnd())
	}
	k.goOn()
}

// unreadable: what was kept is lost. Nothing can be sent instead.
func (r *Router) unreadable() {
	const details = "retry_buffer_read_error"
	if r.sent {
		r.info.Details = details
		r.cb.ResetStream(http.ResetLocal)
		return
	}
	r.reply(507, "the request buffer cannot be read", details)
}

// giveUp gives retries up: the attempt needs more than may be kept.
func (k *keeper) giveUp() {
	why := k.why
	switch {
	case why != nil:
	case k.most > 0:
		why = &overFile
	default:
		why = &overMemory
	}
	k.last = true
	k.r.abandoned(why)
	k.r.retry.on = 0
	k.forget()
}

// forget drops what nobody will need again.
func (k *keeper) forget() {
	if !k.last || k.pos < k.first {
		return
	}
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
	k.mem.Drain(int(k.pos - k.first))
	k.first = k.pos
}

// close gives everything back.
func (k *keeper) close() {
	k.r.keeper = nil
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
	k.mem.Reset()
	k.piece.Reset()
	k.to, k.reader = nil, nil
}
