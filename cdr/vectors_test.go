package cdr

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// vector is a line of testdata/vectors.jsonl.
type vector struct {
	Type, Case, Definition, CDR string
	Value                       map[string]any
}

// schema is every definition of the vectors by short type name, pkg/Type.
type schema map[string]string

// TestVectors encodes and decodes messages as two independent encoders wrote them.
func TestVectors(t *testing.T) {
	f, err := os.Open("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []vector
	types := schema{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var v vector
		d := json.NewDecoder(bytes.NewReader(sc.Bytes()))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		types[strings.Replace(v.Type, "/msg/", "/", 1)] = v.Definition
		list = append(list, v)
	}
	if len(list) < 80 {
		t.Fatalf("%d vectors", len(list))
	}
	for _, v := range list {
		t.Run(v.Type+"/"+v.Case, func(t *testing.T) {
			want, err := hex.DecodeString(v.CDR)
			if err != nil {
				t.Fatal(err)
			}
			e := NewEncoder([]byte{9, 9, 9}, CDRLE) // alignment does not count from the slice's start
			types.encode(t, e, v.Definition, v.Value)
			if !bytes.Equal(e.Bytes()[3:], want) {
				t.Errorf("encoded\n got %x\nwant %x", e.Bytes()[3:], want)
			}
			d, err := NewDecoder(want)
			if err != nil {
				t.Fatal(err)
			}
			types.decode(t, d, v.Definition, v.Value)
			if d.Err() != nil || d.Left() != 0 {
				t.Errorf("decoded: %v, %d bytes left", d.Err(), d.Left())
			}
			// The same value survives in every other representation.
			for _, kind := range []Kind{CDRBE, CDR2LE, CDR2BE} {
				e := NewEncoder(nil, kind)
				types.encode(t, e, v.Definition, v.Value)
				e.Pad()
				if err := d.Reset(e.Bytes()); err != nil {
					t.Fatal(err)
				}
				types.decode(t, d, v.Definition, v.Value)
				if d.Err() != nil || d.Left() != 0 {
					t.Errorf("%s decoded: %v, %d bytes left", kind, d.Err(), d.Left())
				}
			}
		})
	}
}

// fields calls f with the base type, the name and the brackets of every field of a definition.
func fields(def string, f func(base, name, suffix string)) {
	for line := range strings.Lines(def) {
		typ, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		base, suffix, isArray := strings.Cut(typ, "[")
		base, _, _ = strings.Cut(base, "<=")
		if isArray {
			suffix = "[" + suffix
		}
		f(base, name, suffix)
	}
}

func (s schema) encode(t *testing.T, e *Encoder, def string, value map[string]any) {
	fields(def, func(base, name, suffix string) {
		if suffix == "" {
			s.encodeOne(t, e, base, value[name])
			return
		}
		list := value[name].([]any)
		if suffix == "[]" || strings.HasPrefix(suffix, "[<=") {
			e.SeqLen(len(list))
		}
		for _, v := range list {
			s.encodeOne(t, e, base, v)
		}
	})
}

func (s schema) encodeOne(t *testing.T, e *Encoder, base string, v any) {
	switch base {
	case "bool":
		e.Bool(v.(bool))
	case "byte", "char", "uint8":
		e.Uint8(uint8(number(v)))
	case "int8":
		e.Int8(int8(number(v)))
	case "int16":
		e.Int16(int16(number(v)))
	case "uint16":
		e.Uint16(uint16(number(v)))
	case "int32":
		e.Int32(int32(number(v)))
	case "uint32":
		e.Uint32(uint32(number(v)))
	case "int64":
		e.Int64(int64(number(v)))
	case "uint64":
		e.Uint64(number(v))
	case "float32":
		e.Float32(float32(float(v)))
	case "float64":
		e.Float64(float(v))
	case "string":
		e.Str(v.(string))
	case "wstring":
		e.WStr(v.(string))
	case "std_msgs/Empty":
		e.Uint8(0)
	default:
		if s[base] == "" {
			t.Fatalf("type %s is unknown", base)
		}
		s.encode(t, e, s[base], v.(map[string]any))
	}
}

func (s schema) decode(t *testing.T, d *Decoder, def string, value map[string]any) {
	fields(def, func(base, name, suffix string) {
		if suffix == "" {
			s.decodeOne(t, d, base, name, value[name])
			return
		}
		list := value[name].([]any)
		if suffix == "[]" || strings.HasPrefix(suffix, "[<=") {
			if n := d.Len(1); n != len(list) {
				t.Errorf("%s: %d elements, %d expected: %v", name, n, len(list), d.Err())
			}
		}
		for _, v := range list {
			s.decodeOne(t, d, base, name, v)
		}
	})
}

func (s schema) decodeOne(t *testing.T, d *Decoder, base, name string, v any) {
	ok := true
	switch base {
	case "bool":
		ok = d.Bool() == v.(bool)
	case "byte", "char", "uint8":
		ok = d.Uint8() == uint8(number(v))
	case "int8":
		ok = d.Int8() == int8(number(v))
	case "int16":
		ok = d.Int16() == int16(number(v))
	case "uint16":
		ok = d.Uint16() == uint16(number(v))
	case "int32":
		ok = d.Int32() == int32(number(v))
	case "uint32":
		ok = d.Uint32() == uint32(number(v))
	case "int64":
		ok = d.Int64() == int64(number(v))
	case "uint64":
		ok = d.Uint64() == number(v)
	case "float32":
		got, want := d.Float32(), float32(float(v))
		ok = math.Float32bits(got) == math.Float32bits(want) || got != got && want != want
	case "float64":
		got, want := d.Float64(), float(v)
		ok = math.Float64bits(got) == math.Float64bits(want) || got != got && want != want
	case "string":
		ok = d.Str() == v.(string)
	case "wstring":
		ok = d.WStr() == v.(string)
	case "std_msgs/Empty":
		ok = d.Uint8() == 0
	default:
		s.decode(t, d, s[base], v.(map[string]any))
	}
	if !ok {
		t.Errorf("%s: not %v (%v)", name, v, d.Err())
	}
}

// number reads an integer of up to 64 bits, signed or not.
func number(v any) uint64 {
	s := v.(json.Number).String()
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(i)
	}
	u, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return u
}

// float reads a number, or one of the strings for those that JSON lacks.
func float(v any) float64 {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			panic(err)
		}
		return f
	case string:
		return map[string]float64{"NaN": math.Float64frombits(0x7ff8 << 48), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[v]
	}
	panic(v)
}
