//go:build linux

package lab

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// EachDatagram hands every UDP datagram of a capture to f, in the order of the file: classic pcap of Ethernet frames, as
// Net.Capture and Relay.Capture write it.
func EachDatagram(file string, f func(p *Packet)) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 1<<20)
	var head [24]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	order := binary.LittleEndian
	if magic := order.Uint32(head[:]); magic != 0xa1b2c3d4 && magic != 0xa1b23c4d || order.Uint32(head[20:]) != 1 {
		return fmt.Errorf("read %s: not a little-endian pcap of Ethernet frames", file)
	}
	var p Packet
	for {
		var record [16]byte
		if _, err := io.ReadFull(r, record[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		n := order.Uint32(record[8:])
		if n > 1<<18 {
			return fmt.Errorf("read %s: frame of %d bytes", file, n)
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(r, frame); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if p.parse(frame, false) {
			f(&p)
		}
	}
}
