// Command recorder records the topics named on the command line into the bag "example" until Ctrl-C.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	_ "github.com/gobag/gobag/plugins/all" // every storage format
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros/ros2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	node, err := ros2.New(ros2.Options{NodeName: "/example_recorder"})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	r, err := recorder.New(recorder.Options{Node: node, Output: "example", Topics: os.Args[1:]})
	if err != nil {
		log.Fatal(err) //nolint:gocritic // nothing to say goodbye to yet
	}
	res, err := r.Run(ctx)
	for _, t := range res.Topics {
		fmt.Println(t.Name, t.Recorded, "recorded,", t.Lost.Total(), "lost")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
