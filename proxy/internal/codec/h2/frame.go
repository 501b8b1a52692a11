package h2

// Frame types and flags (RFC 9113, section 6).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	framePriority     = 0x2
	frameReset        = 0x3
	frameSettings     = 0x4
	framePush         = 0x5
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	frameHeaderLen = 9
)

// Parameters of SETTINGS.
const (
	settingTableSize      = 0x1
	settingPush           = 0x2
	settingMaxStreams     = 0x3
	settingWindow         = 0x4
	settingMaxFrame       = 0x5
	settingConnectAllowed = 0x8
)

type frameHeader struct {
	length uint32
	id     uint32
	typ    uint8
	flags  uint8
}

func parseFrame(b []byte) frameHeader {
	_ = b[8]
	return frameHeader{
		length: uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
		typ:    b[3],
		flags:  b[4],
		id:     be32(b[5:]) & 0x7fffffff,
	}
}

func appendFrame(b []byte, length int, typ, flags uint8, id uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), typ, flags,
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

func be32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func append32(b []byte, v uint32) []byte {
	return append(b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}
