package h1

// EndsWithConnection tells whether the response under way ends, in good order, when the upstream closes: its body has no length, or
// it is a tunnel, or it is complete.
func (c *Client) EndsWithConnection() bool {
	return c.x != nil && !c.x.over && c.x.phase >= phaseUntilEOF
}
