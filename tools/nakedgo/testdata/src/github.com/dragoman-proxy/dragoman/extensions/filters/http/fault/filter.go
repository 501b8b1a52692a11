package fault

func start(f func()) { go f() } // want `a goroutine of its own is banned here`
