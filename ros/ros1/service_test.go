package ros1_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/apimaster"
	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
	"github.com/bluenviron/goroslib/v2/pkg/prototcp"

	"github.com/gobag/gobag/ros/ros1"
	"github.com/gobag/gobag/ros/ros1/mastertest"
)

// caller is a client of a service, as those of ROS 1 are.
type caller struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
	h protocommon.HeaderRaw
}

func lookup(t *testing.T, m *mastertest.Master, name string) string {
	t.Helper()
	u, err := url.Parse(m.URI())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	found, err := apimaster.NewClient(u.Host, "/caller", &http.Client{Transport: transport}).LookupService(name)
	if err != nil {
		return ""
	}
	if u, err = url.Parse(found); err != nil || u.Scheme != "rosrpc" {
		t.Fatal(found, err)
	}
	return u.Host
}

func call(t *testing.T, address string, h *prototcp.HeaderServiceClient) *caller {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := protocommon.HeaderEncode(c, h); err != nil {
		t.Fatal(err)
	}
	x := &caller{t: t, c: c, r: bufio.NewReader(c)}
	if _, err := x.r.Peek(4); err != nil {
		t.Fatal(err)
	}
	if x.h, err = protocommon.HeaderRawDecode(x.r); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *caller) do(request []byte) (ok bool, reply []byte, err error) {
	x.t.Helper()
	if _, err := x.c.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return false, nil, err
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(x.r, head); err != nil {
		return false, nil, err
	}
	reply = make([]byte, binary.LittleEndian.Uint32(head[1:]))
	_, err = io.ReadFull(x.r, reply)
	return head[0] == 1, reply, err
}

// Services are found through the master, checked by md5sum, called once or many times, and come back after the master does.
func TestServices(t *testing.T) {
	t.Parallel()
	m := mastertest.Start(t)
	n := newNode(t, ros1.Options{Master: m.URI(), Host: "127.0.0.1"})
	calls := 0
	s, err := n.ServeTrigger("/rec/pause", func() (bool, string) { calls++; return true, "paused" })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Serve("/rec/fails", ros1.ServiceType{Name: "x/Y", MD5: "aa"}, func(r []byte) ([]byte, error) { return nil, errors.New("no: " + string(r)) }); err != nil {
		t.Fatal(err)
	}
	if _, err := n.ServeTrigger("/rec/pause", nil); err == nil {
		t.Error("served twice")
	}
	if _, err := n.ServeTrigger("no name", nil); err == nil {
		t.Error("a name that is none")
	}
	address := lookup(t, m, "/rec/pause")
	x := call(t, address, &prototcp.HeaderServiceClient{Callerid: "/c", Service: "/rec/pause", Md5sum: ros1.Trigger.MD5, Persistent: 1})
	if x.h["type"] != "std_srvs/Trigger" || x.h["md5sum"] != ros1.Trigger.MD5 || x.h["callerid"] != n.Name() {
		t.Errorf("%v", x.h)
	}
	for range 3 {
		if ok, reply, err := x.do(nil); err != nil || !ok || string(reply) != "\x01\x06\x00\x00\x00paused" {
			t.Errorf("%v %q %v", ok, reply, err)
		}
	}
	once := call(t, address, &prototcp.HeaderServiceClient{Service: "/rec/pause", Md5sum: "*"})
	if ok, _, err := once.do(nil); !ok || err != nil {
		t.Error(err)
	}
	if _, err := once.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection of one call stays: %v", err)
	}
	if calls != 4 {
		t.Errorf("%d calls", calls)
	}
	failing := call(t, address, &prototcp.HeaderServiceClient{Service: "/rec/fails", Md5sum: "aa"})
	if ok, reply, err := failing.do([]byte("why")); err != nil || ok || string(reply) != "no: why" {
		t.Errorf("%v %q %v", ok, reply, err)
	}
	for _, bad := range []prototcp.HeaderServiceClient{{Service: "/rec/pause", Md5sum: "bb"}, {Service: "/nothing", Md5sum: "*"}} {
		if h := call(t, address, &bad).h; h["error"] == "" {
			t.Errorf("%+v: %v", bad, h)
		}
	}
	huge := call(t, address, &prototcp.HeaderServiceClient{Service: "/rec/fails", Md5sum: "aa"})
	if _, err := huge.c.Write([]byte{255, 255, 255, 255}); err != nil {
		t.Fatal(err)
	}
	if _, err := huge.r.ReadByte(); err == nil {
		t.Error("a request of 4 GiB is waited for")
	}

	m.Stop()
	m.Start()
	eventually(t, "service at the new master", func() bool { return lookup(t, m, "/rec/pause") != "" })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if at := lookup(t, m, "/rec/pause"); at != "" {
		t.Error("still at the master:", at)
	}
	if h := call(t, strings.Clone(address), &prototcp.HeaderServiceClient{Service: "/rec/pause", Md5sum: "*"}).h; h["error"] == "" {
		t.Error("still answered")
	}
}
