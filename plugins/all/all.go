// Package all links in every storage format, for programs that leave the choice to their users. plugin is the
// contract, plugins are the formats.
package all

import (
	_ "github.com/gobag/gobag/plugins/columnar" // columnar
	_ "github.com/gobag/gobag/plugins/leveldb"  // leveldb
	_ "github.com/gobag/gobag/plugins/mcap"     // mcap
	_ "github.com/gobag/gobag/plugins/sqlite"   // sqlite3
)
