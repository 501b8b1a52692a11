package pool

func start(f func()) {
	go f() //ban:allow nakedgo it ends with the worker
	go f() /* want `ban:allow is followed by the analyzer \(nakedgo\) and the reason` */ //ban:allow go it ends with the worker
	go f() /* want `ban:allow is followed by` */                                         //ban:allow
}
