package admin

import (
	"html"
	"strings"
)

const homeHead = `<!DOCTYPE html>
<html lang='en'>
<head>
  <title>Dragoman Admin</title>
  <meta name='viewport' content='width=device-width'>
  <style>
    body { font-family: sans-serif; margin: 2em auto; max-width: 60em; color: #222 }
    table { border-collapse: collapse; width: 100% }
    td { padding: .35em .8em; border-top: 1px solid #ddd; vertical-align: top }
    td.param { border: 0; padding: .1em .8em .1em 2em; color: #555; font-size: 90% }
    form { display: inline; margin: 0 }
    button { font: inherit; cursor: pointer }
    button.get { border: 0; padding: 0; background: none; color: #069; text-decoration: underline }
  </style>
</head>
<body>
<h1>Dragoman Admin</h1>
<p>GET pages are links. POST commands change the running proxy and are buttons.</p>
<table>
`

// home lists the commands as a page from which they can be used.
func (a *Admin) home() string {
	var b strings.Builder
	b.WriteString(homeHead)
	for _, h := range a.order {
		if h.Hidden || h.Path == "/" {
			continue
		}
		name := strings.TrimPrefix(h.Path, "/")
		method, class := "get", " class='get'"
		if h.Mutates {
			method, class = "post", ""
		}
		b.WriteString("<tr><td>")
		if len(h.Params) == 0 && !h.Mutates {
			b.WriteString("<a href='" + name + "'>" + name + "</a>")
		} else {
			b.WriteString("<form id='" + name + "' action='" + name + "' method='" + method + "'><button" + class + ">" + name + "</button></form>")
		}
		b.WriteString("</td><td>" + html.EscapeString(h.Help) + "</td></tr>\n")
		for _, p := range h.Params {
			b.WriteString("<tr><td class='param'>")
			p.field(&b, name)
			b.WriteString("</td><td class='param'>" + html.EscapeString(p.Name+": "+p.Help) + "</td></tr>\n")
		}
	}
	b.WriteString("</table>\n</body>\n</html>\n")
	return b.String()
}

// field writes the form's field of a parameter.
func (p *Param) field(b *strings.Builder, form string) {
	at := " name='" + p.Name + "' form='" + form + "'"
	switch {
	case p.Switch:
		b.WriteString("<input type='checkbox'" + at + ">")
	case len(p.Choices) > 0:
		b.WriteString("<select" + at + ">")
		for _, c := range p.Choices {
			b.WriteString("<option>" + html.EscapeString(c) + "</option>")
		}
		b.WriteString("</select>")
	default:
		b.WriteString("<input type='text'" + at + ">")
	}
}
