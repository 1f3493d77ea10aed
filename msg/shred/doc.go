// Package shred turns CDR payloads of one ROS type into typed columns and columns back into the very same bytes.
//
// Compile makes a Program of a type's description. Append walks a payload and adds its values to the columns of a Batch,
// without allocating once the columns have grown; Assemble writes a row's payload again. That the bytes come back is a
// property of the walk: Append checks everything that the columns do not hold (padding is zero, a bool is 0 or 1, a
// string ends with its NUL and is valid UTF-8, the length is exact) and refuses a payload in which anything else is
// found, with a *NotCanonical. What it refuses, AppendLoose takes as nearly as columns can hold it.
//
// Columns and lists are those of Dremel and Parquet: a leaf field is a column, a sequence or an array is a list (with
// the exception of bytes, which are one value), structs only lend their names to paths. Everything but a list's element
// is required, so definition and repetition level both count the lists above a value. A Batch holds element counts
// instead of levels; Levels and SetLevels convert.
//
// Encapsulations: XCDR1 and plain XCDR2, both byte orders. Sources: OMG XTypes 1.3 §7.4.3.5 (XCDR2 has an extra
// length before collections of strings and structs), RTPS 2.5 §10 (padding at the end), and, for wide strings, what
// the middlewares of ROS 2 do (see cdr.Decoder.WStr).
package shred
