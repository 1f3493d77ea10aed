package sqlite

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// The sync log lies beside a database that is synced more often than commits are worth while: what has been written
// since the last commit, one record for each Sync. A commit makes it obsolete, since records only count on top of the
// commit whose change counter they carry. All integers are little endian:
//
//	uint32  bytes of the body
//	uint32  CRC-32C of the rest
//	uint32  change counter of the database in the commit on top of which the record counts
//	uint32  number of the record, from 0
//	body: for each message
//	  uvarint  id, topic id
//	  varint   receive time, send time
//	  uvarint  source, sequence number, bytes of the payload
//	  payload
//
// What ends the log is a record that does not fit: zeros, a wrong checksum, another counter or number.
const (
	logSuffix   = "-gobaglog"
	logHeader   = 16
	logBytes    = 4 << 20                // of the file: a commit is due then
	logRoom     = 1 << 20                // of zeros, so that a Sync has no sizes to make durable
	logPending  = 64 << 10               // of one record: a commit is as good for more
	commitEvery = 100 * time.Millisecond // and whoever syncs less often has a commit each time
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// syncLog writes the log. pending and over belong to the writer's mu, the rest to who syncs.
type syncLog struct {
	path    string
	wait    bool   // Sync waits for the disk
	pending []byte // a record of the messages since the last one, its header left open
	over    bool   // there are more than it takes

	file      *os.File // nil until there is a first record
	base      uint32
	next      uint32 // record
	off       int64
	room      int64  // of the file
	spare     []byte // for the next pending
	sync      func(*os.File) error
	committed time.Time // when the last commit was started
}

// add notes a message that the next record is to hold.
func (l *syncLog) add(id int64, m *plugin.Message) {
	if l.over || len(l.pending)+len(m.Data) > logPending {
		l.over = true
		return
	}
	b := l.pending
	if len(b) == 0 {
		b = append(b, make([]byte, logHeader)...)
	}
	b = binary.AppendUvarint(b, uint64(id))
	b = binary.AppendUvarint(b, uint64(m.Topic))
	b = binary.AppendVarint(b, m.RecvTime)
	b = binary.AppendVarint(b, m.SendTime)
	b = binary.AppendUvarint(b, uint64(m.Source))
	b = binary.AppendUvarint(b, m.Seq)
	b = binary.AppendUvarint(b, uint64(len(m.Data)))
	l.pending = append(b, m.Data...)
}

// restart follows a commit of everything: base is its counter.
func (l *syncLog) restart(base uint32) {
	l.pending, l.over = l.pending[:0], false
	l.base, l.next, l.off = base, 0, 0
	l.committed = time.Now()
}

// due says whether a commit is to be made instead of a record.
func (l *syncLog) due() bool {
	return l.over || l.off+int64(len(l.pending)) > logBytes || l.committed.IsZero() || time.Since(l.committed) > commitEvery
}

// take returns the record of what is pending, which is complete.
func (l *syncLog) take() []byte {
	rec := l.pending
	u := binary.LittleEndian
	u.PutUint32(rec, uint32(len(rec)-logHeader))
	u.PutUint32(rec[8:], l.base)
	u.PutUint32(rec[12:], l.next)
	u.PutUint32(rec[4:], crc32.Checksum(rec[8:], castagnoli))
	l.pending, l.spare = l.spare[:0], rec
	l.next++
	return rec
}

// write appends a record, and makes it durable where Sync waits for the disk.
func (l *syncLog) write(rec []byte, at int64) error {
	if l.file == nil {
		f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		l.file = f
		if l.wait {
			if err := fsx.SyncDir(filepath.Dir(l.path)); err != nil {
				return err
			}
		}
	}
	if end := at + int64(len(rec)); l.wait && end > l.room {
		n := (end+logRoom-1)/logRoom*logRoom - l.room
		if _, err := l.file.WriteAt(make([]byte, n), l.room); err != nil {
			return err
		}
		l.room += n
	}
	if _, err := l.file.WriteAt(rec, at); err != nil || !l.wait {
		return err
	}
	return l.sync(l.file)
}

// close removes the log; keep leaves it, for what it holds is nowhere else.
func (l *syncLog) close(keep bool) error {
	if l == nil || l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	if !keep {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}
