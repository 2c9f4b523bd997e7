package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

func rev(offset int64) stream.Revision { return stream.Revision{Generation: 1, Offset: offset} }

// A12: the verdict of a commit that its statement did not write, by every way its row can stand afterwards; "again" is a
// row that has the commit's base by now, so that only a statement can tell.
func TestVerdictOf(t *testing.T) {
	c := &commit.Commit{ID: commit.ID{1}, Key: "k", Base: rev(10), Revision: rev(11)}
	first := &commit.Commit{ID: commit.ID{1}, Key: "k", Revision: rev(11)}
	for _, x := range []struct {
		name   string
		commit *commit.Commit
		now    standing
		there  bool
		want   string
	}{
		{"no row", c, standing{}, false, "conflict"},
		{"no row and none expected", first, standing{}, false, "again"},
		{"prepared already", c, standing{revision: rev(10), prepared: rev(11), preparedID: commit.ID{1}}, true, "prepared"},
		{"promoted already", c, standing{revision: rev(11), id: commit.ID{1}}, true, "current"},
		{"promoted already, the next one prepared", c, standing{revision: rev(11), id: commit.ID{1}, prepared: rev(12)}, true, "current"},
		{"another one prepared", c, standing{revision: rev(10), prepared: rev(11), preparedID: commit.ID{2}}, true, "busy"},
		{"base prepared by now", c, standing{revision: rev(9), prepared: rev(10)}, true, "again"},
		{"base current by now", c, standing{revision: rev(10)}, true, "again"},
		{"older", c, standing{revision: rev(9)}, true, "conflict"},
		{"newer", c, standing{revision: rev(12)}, true, "conflict"},
		{"same revision by another commit", c, standing{revision: rev(11), id: commit.ID{2}}, true, "conflict"},
		{"row emptied, none expected", first, standing{}, true, "again"},
	} {
		v, again := verdictOf(x.commit, x.now, x.there)
		got := "prepared"
		switch {
		case again:
			got = "again"
		case v.Current:
			got = "current"
		case v.Err != nil:
			got = commit.ClassOf(v.Err).String()
		}
		if got != x.want {
			t.Errorf("%s: %s (%v), want %s", x.name, got, v.Err, x.want)
		}
	}
}

// A12: SQLSTATE and context errors become the class that the design's table gives them.
func TestClassify(t *testing.T) {
	live := t.Context()
	cancelled, cancel := context.WithCancel(live)
	cancel()
	overdue, stop := context.WithTimeout(live, 0)
	defer stop()
	<-overdue.Done()
	broken := errors.New("broken pipe")
	for _, x := range []struct {
		ctx  context.Context
		err  error
		want commit.Class
	}{
		{live, &pgconn.PgError{Code: "22021"}, commit.Permanent}, // not in the encoding
		{live, &pgconn.PgError{Code: "23514"}, commit.Permanent}, // check violation
		{live, &pgconn.PgError{Code: "54000"}, commit.Permanent}, // program limit
		{live, &pgconn.PgError{Code: "40P01"}, commit.Transient}, // deadlock
		{live, &pgconn.PgError{Code: "42P01"}, commit.Transient}, // no table: an operator can mend it
		{live, &pgconn.PgError{Code: "53100"}, commit.Transient}, // disk full
		{live, &pgconn.PgError{Code: "57014"}, commit.Transient}, // statement time-out
		{live, &pgconn.PgError{Code: "25006"}, commit.Transient}, // read-only after a failover
		{live, broken, commit.Transient},
		{live, context.Canceled, commit.Transient}, // our own bound on a server that does not answer
		{cancelled, broken, commit.Canceled},
		{overdue, context.Canceled, commit.Transient}, // a deadline is the world being slow
	} {
		if got := commit.ClassOf(classify(x.ctx, "prepare", fmt.Errorf("wrapped: %w", x.err))); got != x.want {
			t.Errorf("%v (caller: %v): %s, want %s", x.err, x.ctx.Err(), got, x.want)
		}
	}
	if err := classify(live, "prepare", nil); err != nil {
		t.Error(err)
	}
}

// S7: halving refuses exactly the culprits, keeps the others' order, and an error of another class is the batch's.
func TestIsolate(t *testing.T) {
	write := func(items []int) ([]string, error) {
		verdicts := make([]string, len(items))
		for i, x := range items {
			switch {
			case x < 0:
				return nil, fmt.Errorf("item: %w", commit.ErrPermanent)
			case x == 99:
				return nil, errors.New("connection lost")
			}
			verdicts[i] = fmt.Sprint(x)
		}
		return verdicts, nil
	}
	refuse := func(error) string { return "refused" }
	got, err := isolate([]int{1, -1, 2, 3, -1, -1, 4}, write, refuse)
	if want := []string{"1", "refused", "2", "3", "refused", "refused", "4"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("isolate: %v, %v, want %v", got, err, want)
	}
	if _, err := isolate([]int{1, -1, 99, 2}, write, refuse); err == nil || errors.Is(err, commit.ErrPermanent) {
		t.Errorf("isolate with a lost connection: %v, want that error", err)
	}
}

// A reason of any bytes fits a text column: valid UTF-8, no NUL, bounded, and untouched where it was fine.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "too large", "\x00\xff", strings.Repeat("é", longestReason)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := text(s)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) || len(got) > longestReason {
			t.Errorf("text(%q) = %q", s, got)
		}
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && len(s) <= longestReason && got != s {
			t.Errorf("text(%q) changed it to %q", s, got)
		}
	})
}
