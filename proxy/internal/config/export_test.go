package config

// OldName is a row of the table of old names.
type OldName = oldName

// OldNames is that table.
var OldNames = oldNames
