package route

import (
	"errors"
	"fmt"
	"math"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// RetryNamespace is where a route's or a virtual host's metadata says how its request bodies are kept for retries. Envoy has no field
// for it, and takes metadata that it does not know.
const RetryNamespace = "dragoman.retry"

// RetryBuffer says how request bodies are kept for retries, where a route asks for more than Envoy does: a client whose body does not
// fit is held back while there is no upstream that takes it, and the body may go to a file.
type RetryBuffer struct {
	// MemoryBytes is how much of a body may stay in memory; 0: as much as the request's buffer limit, or a little if there is a file.
	MemoryBytes int64
	// FileBytes is how large a body may be to be kept in a file; 0: there is none.
	FileBytes int64
	// FileFolder is where the file is, "" for the system's folder of temporary files. The file has no name in it.
	FileFolder string
}

// retryBuffer reads the metadata of a route, or of its virtual host if the route's says nothing. nil: as Envoy does it.
func (c *compiler) retryBuffer(e *Entry, vh *routev3.VirtualHost) (*RetryBuffer, error) {
	m, ok := e.metadata[RetryNamespace]
	if s := vh.GetMetadata().GetFilterMetadata()[RetryNamespace]; s != nil && !ok {
		m, ok = s.AsMap(), true
	}
	if !ok {
		return nil, nil
	}
	b, hold := &RetryBuffer{}, true
	for name, v := range m {
		var err error
		switch name {
		case "hold_client":
			if hold, ok = v.(bool); !ok {
				err = fmt.Errorf("%v is neither true nor false", v)
			}
		case "memory_bytes":
			b.MemoryBytes, err = byteCount(v)
		case "file_bytes":
			b.FileBytes, err = byteCount(v)
		case "file_folder":
			if b.FileFolder, ok = v.(string); !ok {
				err = fmt.Errorf("%v is not a path", v)
			}
		default:
			err = errors.New("there is no such field; there are hold_client, memory_bytes, file_bytes and file_folder")
		}
		if err != nil {
			return nil, fmt.Errorf("metadata.filter_metadata[%s].%s: %w", RetryNamespace, name, err)
		}
	}
	switch {
	case !hold && len(m) > 1:
		return nil, fmt.Errorf("metadata.filter_metadata[%s].hold_client: nothing else may be set if it is false", RetryNamespace)
	case !hold:
		return nil, nil
	case b.FileFolder != "" && b.FileBytes == 0:
		return nil, fmt.Errorf("metadata.filter_metadata[%s].file_folder: file_bytes is not set", RetryNamespace)
	}
	return b, nil
}

// byteCount is a whole positive number, which metadata have as a float64.
func byteCount(v any) (int64, error) {
	f, ok := v.(float64)
	if !ok || f < 1 || f > 1<<53 || f != math.Trunc(f) {
		return 0, fmt.Errorf("%v is not a number of bytes from 1 to %d", v, int64(1)<<53)
	}
	return int64(f), nil
}
