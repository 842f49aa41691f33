package graph

import (
	"strings"
	"unicode/utf8"
)

// Nobody knows with which font a drawing will be shown. Text is measured as in
// DejaVu Sans, the widest of those that the style names, so that in no other one
// it leaves its box.

// letters are the characters of similar width, which is in thousandths of the size.
//
// constant: only read
var letters = []struct {
	width int
	chars string
}{
	{330, " \u00a0ijlIJ|!'.,:;/\\"},
	{410, "frt()[]-\""},
	{580, "cksvxyzLF?*_{}^"},
	{720, "ABCEKPRSTVXYZ&"},
	{800, "DGHNOQU+=<>#~"},
	{830, "w"},
	{990, "mMW@%"},
}

const (
	ordinary = 640  // of all other characters up to U+00FF
	foreign  = 800  // of those beyond
	twofold  = 1000 // of those that are as wide as they are high
	bold     = 113  // how much wider bold is, in hundredths
)

// advance is the width of a character, in thousandths of the size.
func advance(r rune) int {
	for _, l := range letters {
		if strings.ContainsRune(l.chars, r) {
			return l.width
		}
	}
	switch {
	case wide(r):
		return twofold
	case r > 0xff:
		return foreign
	}
	return ordinary
}

// lettering is the size of a class of text in pixels, and whether it is bold, as
// the style says.
func lettering(class string) (size int, heavy bool) {
	switch class {
	case "name":
		return 22, true
	case "id":
		return 14, true
	case "head":
		return 13, true
	case "title":
		return 13, false
	case "stop":
		return 12, true
	}
	return 12, false
}

// pixels is how wide a text is at most.
func pixels(class, text string) int {
	n := 0
	for _, r := range text {
		n += advance(r)
	}
	size, heavy := lettering(class)
	n = n * size / 1000
	if heavy {
		n = n * bold / 100
	}
	return n + 1
}

// clip cuts a text to so many pixels.
func clip(class, text string, room int) string {
	if pixels(class, text) <= room {
		return text
	}
	for i := len(text); i > 0; {
		_, n := utf8.DecodeLastRuneInString(text[:i])
		if i -= n; pixels(class, text[:i]+"…") <= room {
			return text[:i] + "…"
		}
	}
	return "…"
}

// wrap breaks a text into at most so many lines of so many pixels, at blanks
// where there are some; what does not fit is cut.
func wrap(class, text string, room, most int) []string {
	var out []string
	rest := strings.NewReplacer("${ ", "${\u00a0", " }", "\u00a0}").Replace(text) // no line begins or ends with a bracket alone
	for rest != "" {
		if len(out) == most-1 || pixels(class, rest) <= room {
			return append(out, clip(class, rest, room))
		}
		blank, soft, at := -1, -1, 0
		for i, r := range rest {
			end := i + utf8.RuneLen(r)
			if pixels(class, rest[:end]) > room && at > 0 {
				break
			}
			switch at = end; r {
			case ' ':
				blank = i
			case '/', '.', '?', '&', '_':
				soft = at
			}
		}
		switch { // at a blank if one is near, else inside an address or a name
		case blank > at/2:
			at = blank
		case soft > at/2:
			at = soft
		}
		out = append(out, strings.TrimSpace(rest[:at]))
		rest = strings.TrimSpace(rest[at:])
	}
	return out
}
