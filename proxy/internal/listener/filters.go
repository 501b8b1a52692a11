package listener

// filter runs the listener filters of a connection, then chooses its chain.
func (s *session) filter() { s.choose() }
