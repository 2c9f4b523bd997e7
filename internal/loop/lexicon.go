package loop

// The words that tools and models speak to each other. They are data, chosen on the tuning part of the corpus.

// isNonceKey: names of values that differ with every call.
func isNonceKey(w string) bool {
	switch w {
	case "attempt", "attempts", "cache_buster", "cachebuster", "call_id", "callid", "cb", "client_ref", "correlation_id",
		"correlationid", "created_at", "date", "duration", "duration_ms", "elapsed", "elapsed_ms", "etag", "event_id", "execution_id",
		"finished_at", "guid", "idempotency_key", "idempotencykey", "invocation", "invocation_id", "iteration", "latency",
		"latency_ms", "log_id", "message_id", "nonce", "now", "random", "ref_id", "req_id", "reqid", "request_id", "requestid",
		"retries", "retry", "retry_count", "rid", "salt", "seed", "sequence_no", "session_token", "span_id", "spanid", "started_at",
		"time", "timestamp", "token", "took", "took_ms", "trace_id", "traceid", "transaction_ref", "tries", "try", "ts", "updated_at",
		"uuid", "x_request_id":
		return true
	}
	return false
}

// isTransientWord: a failure that may pass.
func isTransientWord(w string) bool {
	switch w {
	case "429", "502", "503", "504", "again", "backoff", "busy", "capacity", "concurrent", "connection", "deadlock", "limit", "limited", "locked",
		"overloaded", "quota", "rate", "reset", "retry", "serialize", "temporarily", "temporary", "throttled", "throttling", "timed", "timeout",
		"unavailable", "unreachable":
		return true
	}
	return false
}

// isWaitWord: a pause, or a try later.
func isWaitWord(w string) bool {
	switch w {
	case "back-off", "backoff", "cooldown", "later", "pause", "retry-after", "retry_after", "sleep", "wait", "waited",
		"waiting":
		return true
	}
	return false
}

// isPollWord: something that is asked for until it is done.
func isPollWord(w string) bool {
	switch w {
	case "backup", "build", "check", "deploy", "deployment", "export", "health", "import", "instance", "job", "migration",
		"operation", "order", "pipeline", "poll", "progress", "provision", "queue", "readiness", "render", "run", "shipment", "state",
		"status", "sync", "task", "transfer", "upload", "watch", "workflow":
		return true
	}
	return false
}

// isPendingWord: not done yet.
func isPendingWord(w string) bool {
	switch w {
	case "building", "creating", "draining", "in-progress", "in_progress", "initialising", "initializing", "pending", "processing",
		"progress", "propagating", "provisioning", "pulling", "queued", "queueing", "rendering", "rolling", "running", "scheduled",
		"starting", "syncing", "transcoding", "uploading", "waiting":
		return true
	}
	return false
}

// isAckWord: done, and nothing else.
func isAckWord(w string) bool {
	switch w {
	case "200", "201", "202", "204", "accepted", "ack", "acknowledged", "added", "applied", "archived", "code",
		"complete", "completed", "converted", "copied", "created", "deleted", "done", "imported", "indexed", "inserted", "labeled",
		"labelled", "message", "moved", "ok", "okay", "pass", "passed", "processed", "queued", "removed", "renamed", "resized",
		"result", "saved", "sent", "status", "stored", "succeeded", "success", "successful", "tagged", "true",
		"updated", "uploaded", "valid", "written":
		return true
	}
	return false
}

// isFailWord: it did not work.
func isFailWord(w string) bool {
	switch w {
	case "400", "401", "403", "404", "405", "409", "422", "429", "500", "502", "503", "504", "cannot", "conflict", "denied",
		"eacces", "enoent", "error", "errors", "exceeded", "exception", "fail", "failed", "failure", "fatal", "forbidden", "invalid",
		"missing", "refused", "rejected", "timed", "timeout", "traceback", "unable", "unauthorized", "unavailable", "undefined",
		"unknown", "unreachable":
		return true
	}
	return false
}

// isCountWord: what a number beside it counts.
func isCountWord(w string) bool {
	switch w {
	case "account", "accounts", "accuracy", "after", "article", "articles", "batch", "block", "candidate", "candidates", "case",
		"cases", "chapter", "chunk", "chunks", "claim", "claims", "completed", "contract", "contracts", "cursor", "customer",
		"customers", "day", "document", "documents", "done", "email", "emails", "entries", "entry", "epoch", "file", "files", "floor",
		"frame", "from", "height", "id", "ids", "image", "images", "index", "invoice", "invoices", "item", "items", "left", "lesson",
		"level", "line", "lines", "loss", "lot", "message", "messages", "month", "no", "number", "of", "offset", "order", "orders",
		"page", "pages", "paragraph", "parcel", "part", "partition", "patient", "patients", "percent", "percentage", "photo",
		"photos", "position", "price", "processed", "product", "products", "progress", "question", "record", "records", "remaining",
		"round", "row", "rows", "sample", "score", "section", "segment", "shard", "since", "skip", "sku", "slide", "start", "step",
		"table", "temperature", "test", "tests", "ticket", "tickets", "total", "track", "unit", "user", "users", "verse", "version",
		"week", "year":
		return true
	}
	return false
}

// isFiller: words of a text that tell nothing of what it is about.
func isFiller(w string) bool {
	switch w {
	case "a", "about", "actually", "after", "again", "all", "already", "alright", "also", "am", "an", "and", "another", "any",
		"anyway", "apologies", "apologize", "approach", "are", "as", "at", "attempt", "attempting", "back", "be", "because", "been",
		"before", "begin", "beginning", "being", "believe", "both", "but", "by", "can", "carefully", "certainly", "check", "checking",
		"clearly", "continue", "continuing", "could", "definitely", "did", "different", "do", "does", "doing", "done", "down", "each",
		"earlier", "even", "every", "few", "finally", "fine", "first", "for", "from", "further", "get", "getting", "go", "going",
		"good", "got", "great", "had", "has", "have", "he", "her", "here", "his", "hmm", "hold", "how", "however", "i", "i'll", "i'm",
		"if", "ill", "im", "in", "indeed", "instead", "into", "is", "it", "it's", "its", "just", "last", "let", "let's", "lets",
		"look", "looking", "make", "may", "maybe", "me", "meanwhile", "might", "moment", "more", "must", "my", "need", "needs",
		"next", "no", "not", "now", "obviously", "of", "off", "ok", "okay", "on", "once", "one", "only", "or", "other", "our", "out",
		"over", "per", "perhaps", "please", "possibly", "previous", "previously", "probably", "proceed", "quick", "quickly", "really",
		"retry", "right", "same", "see", "seem", "seems", "shall", "she", "should", "simple", "simply", "since", "so", "some",
		"sorry", "start", "starting", "step", "steps", "still", "sure", "take", "taking", "than", "thank", "thanks", "that", "the",
		"their", "them", "then", "there", "therefore", "these", "they", "think", "thinking", "this", "those", "thus", "time", "times",
		"to", "too", "tried", "try", "trying", "up", "us", "use", "using", "very", "wait", "want", "was", "way", "we", "we'll",
		"well", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with", "would", "yes", "yet", "you", "your":
		return true
	}
	return false
}

// isAttemptWord: a number after it counts tries.
func isAttemptWord(w string) bool {
	switch w {
	case "again", "attempt", "iteration", "pass", "retry", "round", "take", "time", "try":
		return true
	}
	return false
}

// emptyPhrases say that nothing was found, or nothing may be done.
func emptyPhrases() []string {
	return []string{
		"not found", "no results", "no result", "no matches", "no match", "no row", "no reason", "nothing found", "no such", "0 results", "0 matches", "0 rows",
		"empty", "none found", "no data", "no records", "no entries", "could not", "does not exist", "did not match", "not available",
		"no changes", "nothing to", "count: 0", "total: 0", "hits: 0", "no output", "not allowed", "not permitted", "access is denied",
		"doesn't exist", "couldn't", "can't",
	}
}
