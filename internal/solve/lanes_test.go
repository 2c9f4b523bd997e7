package solve

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A7, F29: lanes that a region was given are used by the worker that was told of them, and find readers among the matchers that run, without
// a restart of anybody. What was known of the others stays.
func TestLanesAdded(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		t := r.t
		r.matcher("m1", poolFunc(echo))
		r.send(dispatch("warm", 1, 0))
		if got := r.result(); got.Err != nil {
			t.Fatal(got.Err)
		}
		vias := func() (n, read int) {
			r.remote.mu.Lock()
			defer r.remote.mu.Unlock()
			known := r.remote.regions["default"]
			for _, v := range known.vias {
				if v.reader != "" {
					read++
				}
			}
			return len(known.vias), read
		}
		if n, read := vias(); n != 6 || read != 1 {
			t.Fatalf("%d lanes, %d with a reader", n, read)
		}
		resp, err := kadm.NewClient(r.client).UpdatePartitions(t.Context(), 9, requests)
		if err == nil {
			err = resp.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		r.remote.Expect("default", 9)
		r.remote.Expect("unknown", 9) // of which nothing was asked yet
		r.remote.Expect("default", 3) // fewer than there are
		r.eventually("the new lanes to be known", func() bool { n, _ := vias(); return n == 9 })
		// Each key asks until it is answered, as a machine does.
		n := int64(2)
		began, read := time.Now(), 0
		for read < 9 && time.Since(began) < 2*time.Minute { // the matchers look for new lanes every 30 s
			for i := range 30 {
				r.desk.Submit(dispatch(string(rune('a'+i)), n, 0))
				n++
			}
			for len(r.results) > 0 {
				if got := <-r.results; got.Err != nil {
					t.Error(got.Err)
				}
			}
			pause(t.Context(), 3*time.Second)
			_, read = vias()
		}
		if read != 9 {
			t.Errorf("of 9 lanes %d have been answered by", read)
		}
		if s := r.remote.Stats(); s.Malformed+s.Forged+s.Stray != 0 {
			t.Errorf("%+v", s)
		}
	})
}
