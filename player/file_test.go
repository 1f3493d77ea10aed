package player

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// Going over to another file is told, once per file and bag.
func TestOnFile(t *testing.T) {
	inBubble(t, func(g *rig) {
		dir := filepath.Join(t.TempDir(), "bag")
		w, err := bag.Create(context.Background(), dir, bag.WriterOptions{StorageID: "memory", SyncInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		id, err := w.AddTopic(topics("/a")[0])
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			for k := range 5 {
				if err := w.Write([]plugin.Message{{Topic: id, RecvTime: start + int64(i*5+k)*10*ms, Data: []byte("x")}}); err != nil {
					t.Fatal(err)
				}
			}
			if i < 2 {
				if err := w.Split(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		one := makeBag(t, topics("/b"), every(15, 10, 1))
		var told []string
		began := time.Now()
		g.play(Options{Bag: r, More: []*bag.Reader{one}, DiscoveryWait: -1, OnFile: func(closed, opened string) {
			told = append(told, fmt.Sprintf("%s %s %d", filepath.Base(closed), filepath.Base(opened), time.Since(began).Milliseconds()/10*10))
		}})
		if want := []string{"bag_0.mem bag_1.mem 40", "bag_1.mem bag_2.mem 90"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
