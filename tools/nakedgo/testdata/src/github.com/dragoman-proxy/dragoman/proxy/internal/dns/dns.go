package dns

func start(f func()) { go f() }
