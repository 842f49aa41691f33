package store

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
)

// The sizes of a page of a list.
const (
	DefaultPage = 50  // fits a screen
	LargestPage = 500 // bounds what one request makes the database read
)

// PageBytes is the most bytes of definition sources in one page, so that 500
// definitions of 1 MiB are not read into one answer. A page has at least one
// row whatever its size.
const PageBytes = 1 << 20

// AuditPage is the most audit records that one read returns.
const AuditPage = 1000

// PageSize is the number of rows of a page for a query's limit: 0 or less is
// DefaultPage, more than LargestPage is LargestPage.
func PageSize(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return min(limit, LargestPage)
}

// cursorMark begins every cursor, so that a word that happens to be base64 is
// not taken for a place beyond the end of the list.
const cursorMark = "@\x00"

// Cursor names a place in a list, opaque to clients: the sort key of the last
// row of a page.
func Cursor(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + strings.Join(parts, "\x00")))
}

// ParseCursor returns the parts of a cursor; nil for "", the first page. A
// text that is no cursor with so many parts is refused as invalid.
func ParseCursor(cursor string, parts int) ([]string, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if place, ok := strings.CutPrefix(string(raw), cursorMark); ok && err == nil {
		if got := strings.Split(place, "\x00"); len(got) == parts {
			return got, nil
		}
	}
	return nil, BadCursor()
}

// BadCursor is the refusal of a text that is no cursor of the list.
func BadCursor() error {
	return &ringi.Error{
		Code: ringi.CodeInvalid, Message: "the cursor is not one of this list",
		Hint: "take it unchanged from the page before, or leave it out for the first page",
	}
}

// Votable reports whether a person's list of approvals shows this one: the
// rules would count the person's vote now, and it has not expired.
func Votable(a ringi.Actor, row ringi.ApprovalRow, now time.Time) bool {
	return now.Before(row.Approval.ExpiresAt) && ringi.MayDecide(row.Requester, row.Approval, a)
}
