// Package arrowgo tests the Parquet files of the format columnar with arrow-go, and compares the speed of the two
// writers. It is a module of its own, since arrow-go brings a hundred packages that gobag has no use for.
package arrowgo
