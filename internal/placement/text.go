package placement

// maxQuote is how many bytes are kept of a text that a member wrote, so that what quotes it stays within its budget.
const maxQuote = 1024

// Quote shortens a text that comes from a member, between two characters, if it is longer than what is kept of such.
func Quote(text string) string { return Cut(text, maxQuote) }
