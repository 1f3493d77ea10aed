package bag_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/mcap"
)

// A bag is written and read back.
func Example() {
	tmp, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "run")

	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{StorageID: "mcap"})
	if err != nil {
		log.Fatal(err)
	}
	scan, err := w.AddTopic(plugin.Topic{Name: "/scan", Type: "sensor_msgs/msg/LaserScan"})
	if err != nil {
		log.Fatal(err)
	}
	for i := range int64(3) {
		if err := w.Write([]plugin.Message{{Topic: scan, RecvTime: 1_000_000_000 + i, Data: []byte{0, 1, 0, 0, byte(i)}}}); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		log.Fatal(err)
	}
	defer it.Close()
	for m := (plugin.Message{}); ; {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Info().Topics[m.Topic-1].Name, m.RecvTime, m.Data[4])
	}
	// Output:
	// /scan 1000000000 0
	// /scan 1000000001 1
	// /scan 1000000002 2
}
