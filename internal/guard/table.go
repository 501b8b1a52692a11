package guard

// The guards of this release. To add one: append a constant and the guard in the same place of the list, say in its Why
// what a peer sees with it on and off, and write a change fragment that names it. To remove one on its day: delete both
// and the old behaviour with it.
const (
	// ResendUnacknowledged is asked by the router.
	ResendUnacknowledged ID = iota

	count // number of guards; new constants go above it
)

// builtin is filled in the order of the constants.
func builtin() []Guard {
	return []Guard{
		{Name: PrefixOwn + "resend_unacknowledged", Default: true, Added: "2026-11-30", Remove: "2028-03-01",
			Why: "A request that met an upstream connection which the peer was just closing is sent again instead of answered with 503."},
	}
}

// Builtin returns the table of this release.
func Builtin() (*Table, error) { return NewTable(builtin()...) }
