// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text truncates text from containers and runtimes, makes it safe for terminals and
// shells, and finds similar words.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Truncate returns the longest prefix of s that has at most limit bytes and ends between
// two runes. It replaces every invalid byte with U+FFFD before it counts, so the result is
// valid UTF-8. The cost depends on limit, not on the length of s.
func Truncate[T string | []byte](s T, limit int) string {
	// A rune that begins within the limit is complete in this prefix.
	prefix := string(s[:min(len(s), max(limit, 0)+utf8.UTFMax)])
	if len(prefix) <= limit && utf8.ValidString(prefix) {
		return prefix
	}
	var out strings.Builder
	for _, r := range prefix { // An invalid byte yields U+FFFD.
		if out.Len()+utf8.RuneLen(r) > limit {
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Message returns s as the message of a condition or an event, of at most 1,000 bytes: the API server refuses
// an event with more than 1,024. A longer one ends with three dots.
func Message(s string) string {
	const limit, dots = 1000, "..."
	if len(s) > limit {
		return Truncate(s, limit-len(dots)) + dots
	}
	return Truncate(s, limit)
}

// Safe returns s in a form that a terminal only shows: it moves no cursor, changes no color, title or
// link, and hides and reorders nothing. Newlines and tabs stay. Control characters, format characters
// such as those of bidirectional text and of zero width, and invalid bytes become escape sequences
// of Go, such as \x1b and \u202e. The result is valid UTF-8, and Safe does not change it again.
func Safe(s string) string {
	if isSafe(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		case isSafeRune(r):
			out.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return out.String()
}

// Line returns Safe of s in one line: all white space in a row becomes one blank.
func Line(s string) string { return Safe(strings.Join(strings.Fields(s), " ")) }

// Shell joins the words of a command for a shell of Unix, in which each of them is one word, whatever it contains.
func Shell(words []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,"
	all := make([]string, 0, len(words))
	for _, word := range words {
		if word == "" || strings.Trim(word, plain) != "" {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

func isSafe(s string) bool {
	for i, r := range s {
		if !isSafeRune(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// isSafeRune reports whether a rune has a visible form of its own, or is a blank, a newline or a tab.
// Unicode calls some letters ignorable, which have no width either.
func isSafeRune(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r <= '~' || r == '\n' || r == '\t'
	}
	return unicode.IsGraphic(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// Closest returns the candidate that is most similar to the word, ignoring case, and the first of
// several. It is empty if more than a third of the word's characters, rounded up, differ in all of
// them.
func Closest(word string, candidates []string) string {
	least, best := (len(word)+2)/3+1, ""
	for _, candidate := range candidates {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			least, best = d, candidate
		}
	}
	return best
}

// maxTypos is in how many letters a misspelled word differs.
const maxTypos = 2

// Typo returns the closest candidate if the word is a misspelling of it, so that it is hardly another word.
func Typo(word string, candidates []string) string {
	closest := Closest(word, candidates)
	if levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(closest)) > maxTypos {
		return ""
	}
	return closest
}

// minPrefix is the number of characters from which names that begin with a word are similar to it.
const minPrefix = 2

// Similar returns the names that begin with the word, ignoring the word's case, or else the closest one. It is empty if there are none.
func Similar(word string, names []string) []string {
	var similar []string
	for _, name := range names {
		if len(word) >= minPrefix && strings.HasPrefix(name, strings.ToLower(word)) {
			similar = append(similar, name)
		}
	}
	if closest := Closest(word, names); len(similar) == 0 && closest != "" {
		similar = []string{closest}
	}
	return similar
}

// DidYouMean asks for one of the words, such as `did you mean "get"?`. It is empty without a word.
func DidYouMean(words ...string) string {
	var quoted []string
	for _, word := range words {
		if word != "" {
			quoted = append(quoted, strconv.Quote(word))
		}
	}
	if len(quoted) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(quoted, " or ") + "?"
}

// Suggestion returns DidYouMean as the end of an error.
func Suggestion(words ...string) string {
	if question := DidYouMean(words...); question != "" {
		return "; " + question
	}
	return ""
}

// Count returns the number with the noun, whose plural ends with an s.
func Count[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// MaxNames is how many names a message lists, unless it has a reason for fewer.
const MaxNames = 10

// List joins the first names, at most limit of them, and says how many more there are.
func List(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}
