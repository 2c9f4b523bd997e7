package commit

import "context"

// Outcome is the end of a submitted commit.
type Outcome struct {
	Position int64 // of its ledger entry; -1: published earlier, where is not known
	Err      error // nil: published. Transient promises that it is certainly not published
}

// Pipeline runs the commit stages for all partitions of a process: prepare gathers while one batch is written, the
// lanes take turns to publish. It owns its goroutines; Run returns when ctx ends and every one of them has ended.
type Pipeline struct{ store Store }

// NewPipeline makes a pipeline that is not running yet.
func NewPipeline(cfg PipelineConfig, s Store, p Publisher) *Pipeline { return &Pipeline{store: s} }

// PipelineConfig bounds a pipeline.
type PipelineConfig struct {
	BatchRecords int   // commits a prepare and a transaction
	BatchBytes   int64 // the same in bytes
}

// Run works until ctx ends.
func (p *Pipeline) Run(ctx context.Context) error { panic("not built yet") }

// Submit hands in a commit. It never blocks; done is called exactly once, on a goroutine of the pipeline, and must not
// block. A key has at most one commit in the pipeline.
func (p *Pipeline) Submit(c Commit, done func(Outcome)) { panic("not built yet") }

// Settle waits until no commit of the tenures is in the pipeline: none in a transaction that is open or unknown.
// The tenures must have been lost or drained before, so that none is handed in any more.
func (p *Pipeline) Settle(ctx context.Context, tenures []*Tenure) error { panic("not built yet") }
