package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy"
)

// firstSocket is the first descriptor that a service manager hands over (sd_listen_fds(3)).
const firstSocket = 3

// maxSockets bounds how many it may hand over.
const maxSockets = 1024

// activated makes options of the listening sockets that a service manager has opened for this process, if it has: a listener finds its
// socket by its own name (FileDescriptorName= of the socket unit), or by the address. The variables are unset, so that nobody started
// from here takes the sockets for its own.
func activated() ([]proxy.Option, error) {
	pid, n, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for _, v := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(v)
	}
	count, err := strconv.Atoi(n)
	if err != nil || count < 0 || count > maxSockets {
		return nil, fmt.Errorf("LISTEN_FDS: expected a number from 0 to %d, found '%s'", maxSockets, n)
	}
	named := strings.Split(names, ":")
	var opts []proxy.Option
	for i := range count {
		name := ""
		if i < len(named) {
			name = named[i]
		}
		o, err := taken(os.NewFile(uintptr(firstSocket+i), name), name)
		if err != nil {
			return nil, fmt.Errorf("socket %d (%s) of the service manager: %w", firstSocket+i, name, err)
		}
		opts = append(opts, o...)
	}
	return opts, nil
}

// taken makes options of one socket. Its name is that of the socket unit unless the unit says otherwise.
func taken(f *os.File, name string) ([]proxy.Option, error) {
	defer f.Close() // what is used is a copy
	byName, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	if u, ok := byName.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the path is the service manager's
	}
	if name == "" || name == "unknown" || strings.HasSuffix(name, ".socket") {
		return []proxy.Option{proxy.WithSockets(byName)}, nil
	}
	return []proxy.Option{proxy.WithListener(name, byName)}, nil
}

// notify tells the service manager how the process is (sd_notify(3)); without one it does nothing. It is told once at most per
// change, and whether it listens is not our concern.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(state))
}
