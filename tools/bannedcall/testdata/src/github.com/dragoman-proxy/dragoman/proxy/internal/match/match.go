package match

import "regexp"

func Compile(s string) (*regexp.Regexp, error) { return regexp.Compile(s) }
