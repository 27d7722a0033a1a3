package placement

import (
	"strings"
	"unicode/utf8"
)

// maxQuote is how many bytes are kept of a text that a member wrote, so that what quotes it stays within its budget.
const maxQuote = 1024

// Quote shortens a text that comes from a member, between two characters, if it is longer than what is kept of such.
func Quote(text string) string {
	if len(text) <= maxQuote {
		return text
	}
	const ellipsis = "…"
	end := maxQuote - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimSpace(text[:end]) + ellipsis
}
