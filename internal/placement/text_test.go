package placement

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 3*maxQuote, -1).Draw(t, "text")
		got := Quote(text)
		switch {
		case len(text) <= maxQuote && got != text:
			t.Fatalf("%q became %q", text, got)
		case len(got) > maxQuote || utf8.ValidString(text) != utf8.ValidString(got):
			t.Fatalf("%d bytes became %d, valid %v", len(text), len(got), utf8.ValidString(got))
		case !strings.HasPrefix(text, strings.TrimSuffix(got, "…")):
			t.Fatalf("%q does not begin %q", got, text)
		}
	})
}
