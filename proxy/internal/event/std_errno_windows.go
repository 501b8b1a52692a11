package event

import "syscall"

// winsock gives the POSIX numbers, which Go invents on Windows, for those that the system really returns.
var winsock = map[syscall.Errno]syscall.Errno{
	64:    syscall.ECONNRESET, // ERROR_NETNAME_DELETED
	109:   syscall.EPIPE,      // ERROR_BROKEN_PIPE
	1225:  syscall.ECONNREFUSED,
	1236:  syscall.ECONNABORTED,
	10013: syscall.EACCES,
	10022: syscall.EINVAL,
	10035: syscall.EAGAIN,
	10048: syscall.EADDRINUSE,
	10049: syscall.EADDRNOTAVAIL,
	10050: syscall.ENETDOWN,
	10051: syscall.ENETUNREACH,
	10053: syscall.ECONNABORTED,
	10054: syscall.ECONNRESET,
	10055: syscall.ENOBUFS,
	10057: syscall.ENOTCONN,
	10058: syscall.EPIPE,
	10060: syscall.ETIMEDOUT,
	10061: syscall.ECONNREFUSED,
	10065: syscall.EHOSTUNREACH,
}

func portable(e syscall.Errno) syscall.Errno {
	if p, ok := winsock[e]; ok {
		return p
	}
	return e
}
