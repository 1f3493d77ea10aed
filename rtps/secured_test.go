package rtps

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/gobag/gobag/rtps/wire"
)

// A participant with an identity of DDS Security is recognised. As long as it tells nothing of its endpoints it keeps to
// itself; one that admits others is received.
func TestSecuredParticipant(t *testing.T) {
	link := &silent{}
	p := participant(t, Config{Transport: link})
	prefix := wire.Prefix{7, 7}
	at := []wire.Locator{wire.LocatorFrom(netip.MustParseAddrPort("10.0.0.9:7410"))}
	d := wire.ParticipantData{GUID: wire.MakeGUID(prefix, wire.EntityParticipant), Vendor: wire.VendorFast, Endpoints: wire.BuiltinAll, MetaUnicast: at, DefaultUnicast: at}
	plain := d.Append(nil)
	token, err := hex.DecodeString("0110" + "1800" + "12000000" + hex.EncodeToString([]byte("DDS:Auth:PKI-DH:1.")) + "0000") // IDENTITY_TOKEN
	if err != nil {
		t.Fatal(err)
	}
	secured := append(append(plain[:len(plain)-4:len(plain)-4], token...), plain[len(plain)-4:]...)
	h := wire.Header{Vendor: wire.VendorFast, Prefix: prefix}
	link.receive([][]byte{wire.AppendData(wire.AppendHeader(nil, h), &wire.Data{Writer: wire.EntitySPDPWriter, Seq: 1, Payload: secured})})
	peers := p.Peers()
	if len(peers) != 1 || !peers[0].Secured || peers[0].Reachable || !strings.Contains(peers[0].Reason, "DDS Security") {
		t.Fatalf("%+v; malformed %d", peers, p.Stats().Malformed)
	}
	e := wire.EndpointData{GUID: wire.MakeGUID(prefix, wire.EntityID{0, 0, 1, wire.KindWriterKeyless}), Topic: topic, Type: typ, QoS: QoS{Reliability: Reliable}}
	b := wire.AppendHeartbeat(wire.AppendHeader(nil, h), &wire.Heartbeat{Writer: wire.EntityPubWriter, First: 1, Last: 1, Count: 1})
	link.receive([][]byte{wire.AppendData(b, &wire.Data{Writer: wire.EntityPubWriter, Seq: 1, Payload: e.Append(nil, true)})})
	if peers = p.Peers(); len(peers) != 1 || !peers[0].Secured || !peers[0].Reachable || peers[0].Reason != "" {
		t.Errorf("with an endpoint: %+v", peers)
	}
}
