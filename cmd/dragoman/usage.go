package main

import (
	"strings"
)

// usageWidth is how wide the help is.
const usageWidth = 75

// usage is the list of all flags, as Envoy prints it for --help and after an argument that it does not understand.
func (f *flags) usage() string {
	program := f.program
	words := []string{program, ""}
	for _, o := range f.options {
		switch {
		case o.name == "version":
			words = append(words, "[--]", "[--version]")
		case o.short != "":
			words = append(words, strings.Fields("[-"+o.short+o.placeholder()+"]")...)
		default:
			words = append(words, strings.Fields("[--"+o.name+o.placeholder()+"]")...)
		}
		if _, many := o.value.(*[]string); many {
			words = append(words, "...")
		}
	}
	return wrap(words, 3, 3+len(program)+2)
}

// helpText is what --help prints.
func (f *flags) helpText() string {
	var b strings.Builder
	b.WriteString("\nUSAGE: \n\n" + f.usage() + "\n\nWhere: \n\n")
	for _, o := range f.options {
		if o.name == "version" {
			b.WriteString("   --,  --ignore_rest\n     Ignores the rest of the labeled arguments following this flag.\n\n")
		}
		b.WriteString("   ")
		if o.short != "" {
			b.WriteString("-" + o.short + o.placeholder() + ",  ")
		}
		b.WriteString("--" + o.name + o.placeholder())
		if _, many := o.value.(*[]string); many {
			b.WriteString("  (accepted multiple times)")
		}
		b.WriteString("\n" + wrap(strings.Fields(o.help), 5, 5) + "\n")
	}
	b.WriteString("\n   envoy\n\n")
	return b.String()
}

// problem is what Envoy prints for an argument that it does not understand. Under the command's own name it is short, and says what
// would be right.
func (f *flags) problem(e *argumentError) string {
	if f.own {
		return "dragoman: " + e.Error() + "\n" + f.hint(e.argument) + "Try '" + f.program + " --help'\n"
	}
	return "PARSE ERROR: Argument: " + e.argument + "\n             " + e.problem + "\n\nBrief USAGE: \n" + f.usage() +
		"\nFor complete USAGE and HELP type: \n   " + f.program + " --help\n\n" + e.Error() + "\n"
}

// hint says what an argument that is no flag may have been meant as.
func (f *flags) hint(arg string) string {
	name, value, assigned := strings.Cut(arg, "=")
	switch {
	case f.find(arg) != nil || strings.Contains(arg, "("): // it is a flag, and something else is wrong with it
		return ""
	case assigned && f.find(name) != nil:
		return "A value is an argument of its own: " + name + " " + value + "\n"
	case !strings.HasPrefix(arg, "-"):
		return "A configuration file is given by -c: " + f.program + " -c " + arg + "\n"
	case strings.HasPrefix(arg, "-c") && !strings.HasPrefix(arg, "-co"):
		return "A value is an argument of its own: -c " + arg[2:] + "\n"
	}
	best, most := "", 0
	word := strings.Trim(arg, "-")
	for _, o := range f.options {
		n := 0
		for n < len(word) && n < len(o.name) && word[n] == o.name[n] {
			n++
		}
		if n > most {
			best, most = o.name, n
		}
	}
	if most < 4 {
		return ""
	}
	return "Did you mean --" + best + "?\n"
}

func (o *option) placeholder() string {
	switch o.value.(type) {
	case *bool:
		return ""
	case *uint32:
		return " <uint32_t>"
	}
	return " <string>"
}

// wrap fills lines with words; first and rest are the indents of the first line and of the others. An empty word is a second space.
func wrap(words []string, first, rest int) string {
	var b strings.Builder
	line := strings.Repeat(" ", first)
	empty := true
	for _, w := range words {
		if !empty && len(line)+1+len(w) > usageWidth+1 {
			b.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", rest), true
		}
		if !empty {
			line += " "
		}
		line += w
		empty = false
	}
	return b.String() + line + "\n"
}
