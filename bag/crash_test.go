package bag

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// A child that writes is this test program with these set.
const (
	childEnv     = "GOBAG_BAG_TEST_CHILD" // the bag's directory
	childStorage = "GOBAG_BAG_TEST_STORAGE"
)

// runChild writes until it is killed. Every line says how many messages were written and how many of them are durable.
func runChild(dir string) {
	plugin.Register(plugintest.NewMemory())
	die := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	w, err := Create(context.Background(), dir, WriterOptions{StorageID: os.Getenv(childStorage), SyncInterval: 20 * time.Millisecond,
		MaxBagSize: 2 << 20})
	die(err)
	big, err := w.AddTopic(plugin.Topic{Name: "/big", Type: "x/msg/A"})
	die(err)
	small, err := w.AddTopic(plugin.Topic{Name: "/small", Type: "x/msg/A"})
	die(err)
	var written []time.Time // when Write returned for each message
	durable := 0
	for {
		batch := make([]plugin.Message, 1+rand.IntN(5))
		for i := range batch {
			batch[i] = plugin.Message{Topic: small, RecvTime: time.Now().UnixNano(), Data: make([]byte, 8+rand.IntN(100))}
			if rand.IntN(5) == 0 {
				batch[i].Topic, batch[i].Data = big, make([]byte, 8+rand.IntN(50_000))
			}
			binary.LittleEndian.PutUint64(batch[i].Data, uint64(len(written)+i))
		}
		die(w.Write(batch))
		now := time.Now()
		for range batch {
			written = append(written, now)
		}
		synced := time.Now().Add(-w.Stats().LastSync)
		for durable < len(written) && written[durable].Before(synced) {
			durable++
		}
		fmt.Println(len(written), durable)
	}
}

// SIGKILL at random moments: the bag opens, says that it was cut off, and everything that a sync had covered is there.
func TestKill(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	for _, storage := range []string{"sqlite3", "memory"} {
		for n := range rounds {
			t.Run(fmt.Sprint(storage, n), func(t *testing.T) { killOnce(t, storage) })
		}
	}
}

func killOnce(t *testing.T, storage string) {
	dir := bagDir(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, childStorage+"="+storage)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Duration(50+rand.IntN(600)) * time.Millisecond)
	killed := false
	var written, durable int
	for s := bufio.NewScanner(out); s.Scan(); {
		if _, err := fmt.Sscan(s.Text(), &written, &durable); err != nil {
			t.Fatal(s.Text(), err)
		}
		if !killed && time.Now().After(end) && durable > 0 {
			killed = true
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	if !killed {
		t.Fatal("the child ended by itself")
	}
	r := mustOpen(t, dir)
	i := r.Info()
	if !i.CutOff || i.StillRecording {
		t.Errorf("%+v", i)
	}
	got := readAll(t, r, plugin.Query{})
	seen := map[uint64]bool{}
	for _, m := range got {
		seen[binary.LittleEndian.Uint64(m.Data)] = true
	}
	if len(seen) != len(got) || uint64(len(got)) != i.Messages {
		t.Errorf("%d messages, %d different, %d counted", len(got), len(seen), i.Messages)
	}
	for n := range uint64(durable) {
		if !seen[n] {
			t.Fatalf("message %d of %d durable ones is gone (%d written, %d left)", n, durable, written, len(got))
		}
	}
	for n := range uint64(len(seen)) { // no hole before what was lost
		if !seen[n] {
			t.Fatalf("message %d is gone, later ones are there", n)
		}
	}
	t.Logf("%d written, %d durable, %d found in %d files", written, durable, len(got), len(i.Files))
	if len(i.Files) > 1 {
		if err := os.Remove(filepath.Join(dir, MetadataFile)); err != nil {
			t.Fatal(err)
		}
		if i := mustOpen(t, dir).Info(); i.Messages != uint64(len(got)) || !i.CutOff {
			t.Errorf("without metadata.yaml: %+v", i)
		}
	}
}
