package shred

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/gobag/gobag/msg"
)

// TestReal decodes messages of real bags, whose values are known, and wants the bytes again or the reason that is known
// too.
func TestReal(t *testing.T) {
	list := readVectors(t, shared(t, "data/real-decoded.jsonl"))
	finder := msg.NewFinder(msg.Options{})
	compiled := map[string]*Program{}
	exact, refused, unknown := 0, map[Reason]int{}, map[string]int{}
	for i, v := range list {
		payload, err := hex.DecodeString(v.CDR)
		if err != nil {
			t.Fatal(err)
		}
		p := compiled[v.Type]
		if p == nil {
			d, err := finder.Describe(v.Type, "", "", "")
			if errors.Is(err, msg.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
				unknown[v.Type]++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if p, err = CompileWith(&d, Options{SplitTimes: true}); err != nil {
				t.Fatal(err)
			}
			compiled[v.Type] = p
		}
		b := p.NewBatch()
		err = p.Append(b, payload)
		var not *NotCanonical
		if errors.As(err, &not) {
			if strings.HasPrefix(v.Reencode, "equal") {
				t.Errorf("line %d, %s: %v, but re-encoding is %s", i+1, v.Type, err, v.Reencode)
			}
			refused[not.Reason]++
			if not.Reason > Structure {
				continue
			}
			if _, err = p.AppendLoose(b, payload); err != nil {
				t.Errorf("line %d, %s: %v", i+1, v.Type, err)
				continue
			}
		} else if err != nil {
			t.Fatal(err)
		} else {
			got, err := p.Assemble(nil, b, p.NewCursor())
			if err != nil || !bytes.Equal(got, payload) {
				t.Errorf("line %d, %s: %v\n got %x\nwant %x", i+1, v.Type, err, got, payload)
			}
			exact++
		}
		s, err := p.Value(b, p.NewCursor())
		if err != nil {
			t.Fatal(err)
		}
		t.Run(v.Type, func(t *testing.T) { compare(t, "", s, v.Value) })
	}
	t.Logf("%d messages, %d exact, refused: %v, types not in the table: %v", len(list), exact, refused, unknown)
	if exact < len(list)/2 {
		t.Errorf("only %d of %d messages came back", exact, len(list))
	}
}
