package rtps

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// What is collected under the participant's mutex goes out in that order, whichever goroutine sends it.
func TestSendsKeepTheirOrder(t *testing.T) {
	var sent []uint32 // by one goroutine at a time: the race detector says so if not
	link := &silent{sent: func(b []byte) {
		sent = append(sent, binary.LittleEndian.Uint32(b[wire.HeaderSize:]))
		if len(sent)%100 == 0 {
			time.Sleep(time.Millisecond) // others pile up
		}
	}}
	p := &Participant{out: new(outbox), sends: newSendQueue(), link: plainLink{link}}
	n := uint32(0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				p.mu.Lock()
				b := p.out.open(p, netip.AddrPort{}, wire.Prefix{}, 4)
				p.out.close(binary.LittleEndian.AppendUint32(b, n))
				n++
				p.unlock()
			}
		})
	}
	wg.Wait()
	p.sends.wait()
	if len(sent) != int(n) {
		t.Fatalf("%d of %d datagrams were sent", len(sent), n)
	}
	for i, k := range sent {
		if int(k) != i {
			t.Fatalf("datagram %d was sent as number %d", k, i)
		}
	}
}
