package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"milepost/internal/fleet"
	"milepost/internal/fleet/ingest"
	"milepost/internal/tracefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func file(name, text string) ingest.Input {
	return ingest.Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

// two vehicles, one after the other in the file, side by side in time; a bad row between.
const trace = `vehicle,t_ms,lon,lat
a,10000,1,2
a,12000,1,3
a,x,1,2
b,11000,2,2
b,14000,2,3
`

// played is when and what a feed produced.
func played(t *testing.T, opts ingest.Options, text string, stop int) (out, refused []string, err error) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	f, err := ingest.New(opts, []ingest.Input{file("t.csv", text)}, func(_ context.Context, r ingest.Record) error {
		fix, err := fleet.DecodeFix(r.Value)
		if err != nil {
			t.Errorf("the value does not decode: %v", err)
		}
		if fix.Vehicle != r.Vehicle || !fix.Time.Equal(r.Time) {
			t.Errorf("record of %s at %s holds %s at %s", r.Vehicle, r.Time, fix.Vehicle, fix.Time)
		}
		event := r.Time.Sub(time.UnixMilli(0))
		if opts.Time == ingest.Shift {
			event = r.Time.Sub(start)
		}
		out = append(out, fmt.Sprintf("%s %s at %s", r.Vehicle, event, time.Since(start)))
		if len(out) == stop {
			cancel(errStopped)
		}
		return nil
	}, func(e *tracefile.RowError) { refused = append(refused, e.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	err = f.Run(ctx)
	if p := f.Progress(); int(p.Sent) != len(out) || int(p.Refused) != len(refused) {
		t.Errorf("progress %+v for %d sent, %d refused", p, len(out), len(refused))
	}
	return out, refused, err
}

var errStopped = errors.New("stopped")

// Issue 3, replay: rate and real-time factor, keep and shift; bad rows are refused and the good ones go in; in a loop times rise.
func TestFeed(t *testing.T) {
	for _, c := range []struct {
		name string
		opts ingest.Options
		stop int
		want []string
	}{
		{
			"as fast as it goes",
			ingest.Options{Time: ingest.Keep},
			0,
			[]string{"a 10s at 0s", "a 12s at 0s", "b 11s at 0s", "b 14s at 0s"},
		},
		{
			"two a second",
			ingest.Options{Time: ingest.Keep, Pace: ingest.Pace{Rate: 2}},
			0,
			[]string{"a 10s at 0s", "a 12s at 500ms", "b 11s at 1s", "b 14s at 1.5s"},
		},
		{
			"twice real time, vehicles side by side",
			ingest.Options{Time: ingest.Keep, Pace: ingest.Pace{Speed: 2}},
			0,
			[]string{"a 10s at 0s", "b 11s at 500ms", "a 12s at 1s", "b 14s at 2s"},
		},
		{
			"shifted, in a loop",
			ingest.Options{Time: ingest.Shift, Loop: true, Pace: ingest.Pace{Speed: 1}},
			6,
			[]string{"a 0s at 0s", "b 1s at 1s", "a 2s at 2s", "b 4s at 4s", "a 5s at 5s", "b 6s at 6s"},
		},
		{
			"shifted, in a loop, at a rate",
			ingest.Options{Time: ingest.Shift, Loop: true, Pace: ingest.Pace{Rate: 1}},
			6,
			[]string{"a 0s at 0s", "a 2s at 1s", "b 1s at 2s", "b 4s at 3s", "a 5s at 4s", "a 7s at 5s"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, refused, err := played(t, c.opts, trace, c.stop)
				if c.stop == 0 && err != nil || c.stop > 0 && !errors.Is(err, errStopped) {
					t.Errorf("run: %v", err)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
				if want := []string{`t.csv:4: column "t_ms": not a whole number of milliseconds`}; cmp.Diff(want, refused) != "" {
					t.Errorf("refused %q, want %q", refused, want)
				}
			})
		})
	}
}

// Issue 3: fixes without time are refused, each by its line, or take an assumed step.
func TestFeedWithoutTimes(t *testing.T) {
	const untimed = "vehicle,lon,lat\na,1,2\nb,1,2\na,1,3\n"
	synctest.Test(t, func(t *testing.T) {
		got, refused, err := played(t, ingest.Options{Time: ingest.Keep}, untimed, 0)
		if len(got) != 0 || len(refused) != 3 || err != nil || !strings.HasPrefix(refused[2], "t.csv:4: the fix has no time") {
			t.Errorf("got %v, refused %v, %v", got, refused, err)
		}
		got, refused, err = played(t, ingest.Options{Time: ingest.Shift, AssumeStep: time.Second, Pace: ingest.Pace{Speed: 1}}, untimed, 0)
		if d := cmp.Diff([]string{"a 0s at 0s", "b 0s at 0s", "a 1s at 1s"}, got); d != "" || len(refused) != 0 || err != nil {
			t.Errorf("%s, refused %v, %v", d, refused, err)
		}
	})
}

// A feed ends with its producer's error, and with its context in the middle of a wait; a loop over nothing ends.
func TestFeedEnds(t *testing.T) {
	full := errors.New("broker away")
	f, err := ingest.New(ingest.Options{Time: ingest.Keep}, []ingest.Input{file("t.csv", trace)},
		func(context.Context, ingest.Record) error { return full }, func(*tracefile.RowError) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); !errors.Is(err, full) {
		t.Errorf("got %v, want the producer's error", err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errStopped)
		defer cancel()
		sent := 0
		f, err := ingest.New(ingest.Options{Time: ingest.Keep, Pace: ingest.Pace{Rate: 0.01}}, []ingest.Input{file("t.csv", trace)},
			func(context.Context, ingest.Record) error { sent++; return nil }, func(*tracefile.RowError) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Run(ctx); !errors.Is(err, errStopped) || sent != 1 {
			t.Errorf("got %v after %d", err, sent)
		}
		if _, _, err := played(t, ingest.Options{Time: ingest.Shift, Loop: true}, "lon,lat\n", 0); err == nil {
			t.Error("a loop over nothing ended well")
		}
	})
}

// Options that cannot be played are refused with the reason.
func TestOptions(t *testing.T) {
	for _, o := range []ingest.Options{
		{},
		{Time: ingest.Keep, Loop: true},
		{Time: ingest.Keep, Pace: ingest.Pace{Rate: 1, Speed: 1}},
		{Time: ingest.Keep, Pace: ingest.Pace{Rate: -1}},
		{Time: ingest.Keep, Pace: ingest.Pace{Speed: -1}},
		{Time: ingest.Keep, AssumeStep: -1},
	} {
		if _, err := ingest.New(o, []ingest.Input{file("t.csv", trace)}, nil, nil); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
