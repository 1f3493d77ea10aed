// Package cdr reads and writes the Common Data Representation in which DDS carries payloads: the 4-byte encapsulation
// header, XCDR1 and plain XCDR2 values in both byte orders, and parameter lists (discovery data, inline QoS).
//
// A Decoder never panics and never allocates by an unchecked length: it keeps the first error, after which every read
// returns zero. An Encoder cannot fail. Sources: OMG XTypes 1.3 §7.4, OMG RTPS 2.5 §9.4.2 and §10.
package cdr
