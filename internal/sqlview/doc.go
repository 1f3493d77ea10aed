// Package sqlview shows the topics of bags as tables of SQLite, for reading only. Messages are decoded while a query runs;
// nothing is imported, and a bag may be recorded into meanwhile (what is whole when a scan begins is seen).
//
// Every topic is a virtual table with the topic's name, "/imu/data", and with one that needs no quotes where that is
// unambiguous, imu_data. The same topic in several bags is one table. Its columns:
//
//	_log_time    INTEGER  reception, ns since the Unix epoch
//	_pub_time    INTEGER  the publisher's stamp, the same unit; NULL unknown
//	_bag         TEXT     the bag as it was named (hidden from * where there is one bag only)
//	_source _seq _order   INTEGER: writer, its sequence number, number in the recording (hidden from *)
//	_size _cdr            INTEGER, BLOB: length of the payload, the payload (hidden from *)
//	"a.b"        a field: INTEGER (bool 0 and 1; time and duration in ns; a uint64 above 2⁶³−1 as TEXT), REAL (NaN is
//	             NULL), TEXT, BLOB for arrays of bytes, and JSON text for other arrays, so for lists of structs
//
// A message that cannot be decoded has NULL in its fields and is counted (View.Trouble). The table messages has all topics
// (_topic, _type and the columns with an underscore), the table topics lists them; a type that several topics have is a table
// of all their messages, named as it is.
//
// Only the columns that a query uses are decoded. Bounds on _log_time and equality of _bag and _topic choose what is read,
// comparisons of fields leave rows out before SQLite sees them, and ORDER BY _log_time costs nothing.
//
// Of columnar bags, a SELECT of one table with simple comparisons, and with keys and aggregates if it has groups, is answered
// by kernels, which read columns as they lie on disk (kernel.go), whether it is the whole query or stands in parentheses
// (subquery.go). They give SQLite's answers, or none. lex.go and parse.go read such SELECTs, kernel_source.go finds their
// columns and keeps some, kernel_scan.go finds rows, kernel_group.go, kernel_run.go and kernel_plain.go make answers; gaps.go
// finds gaps between messages.
package sqlview
