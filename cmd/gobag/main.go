// Command gobag records ROS 2 topics off the wire into bags, shows bags, plays them back and measures how much of the
// traffic was kept. Its verbs and flags are those of `ros2 bag` where those exist. One file per verb.
package main

import (
	"fmt"
	"io"
	"os"

	_ "github.com/gobag/gobag/plugins/all" // every storage format
	_ "github.com/gobag/gobag/rosbag1"     // bags of ROS 1, to be read
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// run is the whole program: it parses args (without the program's name), runs the verb and returns the exit code. env
// looks up an environment variable, "" where it is not set.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	a := newApp(stdin, stdout, stderr, env)
	defer a.con.Close()
	root := newRoot(a)
	root.SetArgs(expandLists(root, args))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(a.ctx)
	a.con.SetStatus("")
	code, text := explain(err)
	if text != "" {
		fmt.Fprintf(a.con, "[ERROR] [gobag]: %s\n", text)
	}
	return code
}
