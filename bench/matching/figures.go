package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"milepost/bench/machine"
)

// figures is what one run says of one set: a file beside the page.
type figures struct {
	Set        string          `json:"set"`
	Title      string          `json:"title"`
	About      string          `json:"about"`
	Date       string          `json:"date"`
	Machine    string          `json:"machine"`
	LoadBefore string          `json:"load_before"` // 1, 5 and 15 minutes
	LoadAfter  string          `json:"load_after"`
	Revision   string          `json:"revision"`
	Engines    []engineNote    `json:"engines,omitempty"`
	Contenders []contenderNote `json:"contenders,omitempty"`
	Goals      []goalNote      `json:"goals,omitempty"`
	Rows       []row           `json:"rows,omitempty"`
	Pushes     []pushRow       `json:"pushes,omitempty"`
}

type engineNote struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Missing string `json:"missing,omitempty"` // why it did not take part
}

type contenderNote struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	About string `json:"about"`
}

type goalNote struct {
	StepS       float64 `json:"step_s"`
	MismatchPct float64 `json:"mismatch_pct"`
}

// row is one contender at one step.
type row struct {
	Contender       string   `json:"contender"`
	StepS           float64  `json:"step_s"`
	Step            string   `json:"step,omitempty"`
	Drives          int      `json:"drives"`
	Points          int      `json:"points"`
	TrueKM          float64  `json:"true_km"`
	MismatchPct     float64  `json:"mismatch_pct"` // by length, over all drives
	MedianPct       float64  `json:"median_pct"`   // of the drives
	WorstTenthPct   float64  `json:"worst_tenth_pct"`
	CorrectPct      float64  `json:"correct_pct"`
	AddedPct        float64  `json:"added_pct"`
	Failed          int      `json:"failed"` // drives without an answer
	Why             string   `json:"why,omitempty"`
	Pieces          int      `json:"pieces"`
	PointsPerCore   float64  `json:"points_per_core_s"`
	PointsPerSecond float64  `json:"points_per_s"`
	Rounds          int      `json:"rounds"`
	Lag             *lagNote `json:"lag,omitempty"`
}

type lagNote struct {
	PointsP50  float64  `json:"points_p50"`
	PointsP95  float64  `json:"points_p95"`
	PointsP99  float64  `json:"points_p99"`
	SecondsP50 float64  `json:"seconds_p50"`
	SecondsP95 float64  `json:"seconds_p95"`
	SecondsP99 float64  `json:"seconds_p99"`
	RevisedPct float64  `json:"revised_pct"`
	Breaks     int      `json:"breaks"`
	LeftPct    *float64 `json:"left_pct,omitempty"` // observations without a place of their own; runs of old do not say
}

func newFigures(s *set) *figures {
	f := &figures{
		Set: s.name, Title: s.title, About: s.about, Date: time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		Machine: machine.Describe(), LoadBefore: machine.Load(), Revision: machine.Revision(),
	}
	for _, g := range s.goals {
		f.Goals = append(f.Goals, goalNote{StepS: g.stepS, MismatchPct: g.mismatchPct})
	}
	return f
}

func (f *figures) write(folder string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, f.Set+".json"), append(text, '\n'), 0o644)
}

// readFigures reads what runs have left; sets that never ran are missing.
func readFigures(folder string) (map[string]*figures, error) {
	out := make(map[string]*figures)
	for _, name := range setNames() {
		text, err := os.ReadFile(filepath.Join(folder, name+".json"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := new(figures)
		if err := json.Unmarshal(text, f); err != nil {
			return nil, fmt.Errorf("%s.json: %w", name, err)
		}
		out[name] = f
	}
	return out, nil
}

// setNames are the sets in the order of the page; push is that of single observations.
func setNames() []string { return []string{"traffic", "kubicka", "delaware", "hof", "push"} }
