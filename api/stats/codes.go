package stats

import "strconv"

// A code block is laid out so that what real traffic uses sits side by side: five classes, "unknown", then the codes below.
// Codes that are not in the list have no cell; a Recorder keeps them aside on their first use.
const (
	codesUnknown = 5
	codesFirst   = 6

	// CodesCells is the number of cells of a code block.
	CodesCells = codesFirst + 34
)

// CodeSlot returns the offset of a code's counter in a code block, 0 for a code from 100 to 599 that has no cell of its own,
// CodeUnknown for any other. The offset of a class is code/100-1.
func CodeSlot(code int) uint32 {
	if uint(code-100) >= uint(len(codeSlots)) {
		return CodeUnknown
	}
	return uint32(codeSlots[code-100])
}

var codeSlots = makeCodeSlots()

// commonCodes have a cell of their own, most frequent first.
var commonCodes = [CodesCells - codesFirst]uint16{
	200, 204, 304, 404, 503, 302, 301, 400, 401, 403, 500, 502, 504, 429, 201, 206, 202, 101,
	100, 303, 307, 308, 405, 408, 409, 410, 412, 413, 416, 422, 426, 431, 499, 501,
}

// CodeUnknown is the offset in a code block of the counter for codes outside 100..599.
const CodeUnknown = codesUnknown

func makeCodeSlots() (slots [500]uint8) {
	for i, code := range commonCodes {
		slots[code-100] = uint8(codesFirst + i)
	}
	return slots
}

func codeSuffixes() []string {
	out := []string{"1xx", "2xx", "3xx", "4xx", "5xx", "unknown"}
	for _, code := range commonCodes {
		out = append(out, strconv.Itoa(int(code)))
	}
	return out
}
