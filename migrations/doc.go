// Package migrations holds Milepost's tables as goose SQL files. The orchestrator runs them from FS; the
// stock goose command runs the same files from this folder. Both keep their books in goose_db_version, and all
// names are unqualified: the connection's search_path says in which schema the tables stand.
//
// A file that has been released never changes; what comes later is a new file.
package migrations
