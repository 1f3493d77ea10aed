// Command reader prints time, topic and size of every message of the bag named on the command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/all" // every storage format
)

func main() {
	r, err := bag.Open(context.Background(), os.Args[1], bag.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		log.Fatal(err)
	}
	topics := r.Info().Topics
	for m := (plugin.Message{}); ; {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.RecvTime, topics[m.Topic-1].Name, len(m.Data))
	}
}
