package config

// OldName is a row of the table of old names.
type OldName = oldName

// OldNames is that table.
var OldNames = oldNames

// Replacements are what is said of deprecated fields.
var Replacements = replacements

// RegexSize is regexSize.
var RegexSize = regexSize
