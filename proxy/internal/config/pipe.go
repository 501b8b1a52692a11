package config

import "strings"

// maxPipePath is one more than the longest path of a Unix domain socket: the system's structure has room for so many bytes, with the zero
// at the end (unix(7), sun_path).
const maxPipePath = 108

// CheckPipe tells what is wrong with the path or the mode of a Unix domain socket, in Envoy's words; the error's path is that of the Pipe.
func CheckPipe(path string, mode uint32) error {
	switch {
	case len(path) >= maxPipePath:
		return &Error{Path: "path", Kind: Invalid, Msg: `Path "` + path + `" exceeds maximum UNIX domain socket path size of 108.`}
	case strings.HasPrefix(path, "@") && mode != 0:
		return &Error{Path: "mode", Kind: Invalid, Msg: "Cannot set mode for Abstract AF_UNIX sockets"}
	case strings.Contains(strings.TrimPrefix(path, "@"), "\x00"):
		return &Error{Path: "path", Kind: Invalid, Msg: "UNIX domain socket pathname contains embedded null characters"}
	}
	return nil
}
