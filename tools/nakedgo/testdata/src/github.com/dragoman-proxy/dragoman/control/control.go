package control

func start(f func()) { go f() }
