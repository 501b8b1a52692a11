package match

// predicate is a condition of a list matcher.
type predicate interface{ match(d *Data) Outcome }

// single tests one input.
type single struct {
	in   input
	test func(d *Data, v Value) bool
}

func (p *single) match(d *Data) Outcome {
	v, ok := p.in.read(d)
	if !ok {
		return Insufficient
	}
	if p.test(d, v) {
		return Match
	}
	return NoMatch
}

// and matches if all do. What comes behind an input that is not there yet is not looked at.
type and []predicate

func (p and) match(d *Data) Outcome {
	for _, x := range p {
		if o := x.match(d); o != Match {
			return o
		}
	}
	return Match
}

// or matches if one does, even if inputs of others are not there yet.
type or []predicate

func (p or) match(d *Data) Outcome {
	out := NoMatch
	for _, x := range p {
		switch x.match(d) {
		case Match:
			return Match
		case Insufficient:
			out = Insufficient
		}
	}
	return out
}

// not turns its predicate around.
type not struct{ predicate }

func (p not) match(d *Data) Outcome {
	switch p.predicate.match(d) {
	case Match:
		return NoMatch
	case NoMatch:
		return Match
	}
	return Insufficient
}
