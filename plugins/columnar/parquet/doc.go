// Package parquet writes and reads the Parquet files of the storage format columnar. It is not a Parquet library: it
// writes what that format needs, and reads what it writes. Any Parquet reader reads the files.
//
// A file has one row group. Its rows come in page groups: one Append is one page in every column, so that the rows of
// page group i are the i-th page of each column. Fields are required; a list is the usual LIST of three levels. The
// footer carries, beside what Parquet asks for, checksums (CRC-32C) of every page and of the footer itself, so that the
// reader notices any changed byte. Offset and column indexes are written for others; this reader needs them not.
//
// Encodings: PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY and BYTE_STREAM_SPLIT, chosen for each
// column by encoding and compressing a sample; pages of version 1; zstd. Source: the Apache Parquet format
// specification 2.11, https://parquet.apache.org/docs/file-format/.
package parquet
