package placement

import "unicode/utf8"

// Cut shortens a message to n bytes, between two characters. Text that comes from elsewhere is cut where it enters: one
// condition that is too long keeps a whole status from being written.
func Cut(message string, n int) string {
	if len(message) <= n {
		return message
	}
	const ellipsis = "…"
	end := n - len(ellipsis)
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
