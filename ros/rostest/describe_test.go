package rostest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/ros"
)

func TestDescribeType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := NewNetwork(Options{})
		asker, answerer := net.Node("asker"), net.Node("answerer")
		defer asker.Close()
		defer answerer.Close()
		if _, err := answerer.Advertise(ros.Topic{Name: "/a", Type: "x/msg/Y", TypeHash: "RIHS01_1"}, ros.DefaultQoS()); err != nil {
			t.Fatal(err)
		}
		publisher := asker.Graph().Topics()[0].Publishers[0].ID
		ask := func(id ros.EndpointID, timeout time.Duration) ([]ros.TypeSource, error) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			return asker.DescribeType(ctx, id, "x/msg/Y", "RIHS01_1")
		}
		for _, id := range []ros.EndpointID{publisher, {1}} { // nobody answers; nobody has it
			before := time.Now()
			if _, err := ask(id, time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != time.Second {
				t.Errorf("%v after %v", err, time.Since(before))
			}
		}
		want := []ros.TypeSource{{Type: "x/msg/Y", Encoding: "msg", Text: "int32 a"}}
		time.AfterFunc(time.Second, func() {
			answerer.ServeTypes(func(_ context.Context, typ, hash string) ([]ros.TypeSource, error) {
				if typ != "x/msg/Y" || hash != "RIHS01_1" {
					t.Errorf("asked for %s %s", typ, hash)
				}
				return want, nil
			})
		})
		if got, err := ask(publisher, time.Minute); err != nil || len(got) != 1 || got[0] != want[0] {
			t.Errorf("%v %v", got, err)
		}
		refusal := errors.New("unknown type")
		answerer.ServeTypes(func(context.Context, string, string) ([]ros.TypeSource, error) { return nil, refusal })
		if _, err := ask(publisher, time.Minute); !errors.Is(err, refusal) {
			t.Error(err)
		}
		asker.Close()
		if _, err := ask(publisher, time.Minute); !errors.Is(err, ros.ErrClosed) {
			t.Error(err)
		}
	})
}
