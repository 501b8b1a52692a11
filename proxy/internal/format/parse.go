package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// syntax says which parts of %NAME(params):length% a command takes.
type syntax uint8

const (
	params   syntax = 1 << iota // may have parameters
	required                    // must have parameters
	length                      // may have a length

	bare syntax = 0
)

// command is an entry of the table of operators.
type command struct {
	syntax syntax
	build  func(b *builder) (*operator, error)
}

// builder is a parsed %NAME(params):length% on its way to an operator.
type builder struct {
	name  string
	param string
	max   int // -1: none given
	opts  *Options
	depth int // of COALESCE
}

// Extra makes the operator of a formatter extension: it gets the parameters and returns a function that appends the value.
type Extra func(param string) (func(dst []byte, c *Context) ([]byte, bool), error)

// parse splits a format into literals and operators. Errors are Envoy's.
func parse(s string, o *Options) ([]part, error) {
	var out []part
	var errs config.Errors
	lit := func(t string) {
		if n := len(out); n > 0 && out[n-1].op == nil {
			out[n-1].lit += t
		} else {
			out = append(out, part{lit: t})
		}
	}
	for pos := 0; pos < len(s); {
		if s[pos] != '%' {
			n := strings.IndexByte(s[pos:], '%')
			if n < 0 {
				n = len(s) - pos
			}
			lit(s[pos : pos+n])
			pos += n
			continue
		}
		if strings.HasPrefix(s[pos:], "%%") {
			lit("%")
			pos += 2
			continue
		}
		b := &builder{opts: o}
		n, ok := b.scan(s[pos:])
		if !ok {
			errs.Collect("", noCommand(s, pos))
			break
		}
		op, err := b.operator()
		errs.Collect("", err)
		out = append(out, part{op: op})
		pos += n
	}
	return out, single(&errs)
}

// single is the error of a list that may hold only one.
func single(errs *config.Errors) error {
	if errs.More == 0 && len(errs.List) == 1 {
		return errs.List[0]
	}
	return errs.Err()
}

// scan reads a command at the start of s and returns how long it is. Parameters end at the first ")" after which the command
// can end; they hold anything but line feeds.
func (b *builder) scan(s string) (n int, ok bool) {
	i := 1
	for i < len(s) && (s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9' || s[i] == '_') {
		i++
	}
	if i == 1 || i == len(s) {
		return 0, false
	}
	b.name = s[1:i]
	if s[i] != '(' {
		return b.scanEnd(s, i)
	}
	i++
	for start := i; i < len(s) && s[i] != '\n'; i++ {
		if s[i] != ')' {
			continue
		}
		if n, ok := b.scanEnd(s, i+1); ok {
			b.param = s[start:i]
			return n, true
		}
	}
	return 0, false
}

// scanEnd reads ":length" if there is one, and the closing "%".
func (b *builder) scanEnd(s string, i int) (int, bool) {
	b.max = -1
	if i < len(s) && s[i] == ':' {
		start := i + 1
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		}
		v, err := strconv.ParseUint(s[start:i], 10, 64)
		if err != nil {
			return 0, false
		}
		b.max = int(min(v, 1<<31-1))
	}
	if i >= len(s) || s[i] != '%' {
		return 0, false
	}
	return i + 1, true
}

// operator looks the command up and builds it.
func (b *builder) operator() (*operator, error) {
	if op, ok, err := b.lookup(); ok || err != nil {
		return op, err
	}
	return nil, noOperator(b.name, b.param != "")
}

// lookup is operator for callers with words of their own for an unknown command: ok is false then.
func (b *builder) lookup() (op *operator, ok bool, err error) {
	if x, ok := b.opts.Extra[b.name]; ok {
		f, err := x(b.param)
		if err != nil {
			return nil, true, err
		}
		return &operator{append: f, max: b.max}, true, nil
	}
	if b.name == "COALESCE" {
		op, err = b.coalesce()
		return op, true, err
	}
	c, ok := commands[b.name]
	if !ok {
		if notYet[b.name] {
			return nil, true, fmt.Errorf("%s is not supported yet", b.name)
		}
		return nil, false, nil
	}
	if err := b.check(c.syntax); err != nil {
		return nil, true, err
	}
	op, err = c.build(b)
	if err != nil {
		return nil, true, err
	}
	op.max = b.max
	return op, true, nil
}

func (b *builder) check(s syntax) error {
	switch {
	case s == bare && (b.param != "" || b.max >= 0):
		return fmt.Errorf("%s does not take any parameters or length", b.name)
	case s&required != 0 && b.param == "":
		return fmt.Errorf("%s requires parameters", b.name)
	case s&length == 0 && b.max >= 0:
		return refuse("%s does not allow length to be specified.", b.name)
	}
	return nil
}

// refuse makes an error in Envoy's words, which begin with a capital and may end with a point.
func refuse(format string, args ...any) error { return fmt.Errorf(format, args...) }
