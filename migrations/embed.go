package migrations

import "embed"

// FS holds the migration files, NNNNN_name.sql.
//
//go:embed *.sql
var FS embed.FS
