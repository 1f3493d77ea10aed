package ros

// Sample is a received message. Its Data belongs to the handler until Release.
type Sample struct {
	Data       []byte     // serialized, as it came
	SourceTime int64      // the publisher's stamp, ns since the Unix epoch; RecvTime where it sent none
	RecvTime   int64      // wall clock at reception, ns since the Unix epoch
	Writer     EndpointID // who sent it
	Seq        uint64     // the writer's sequence number; 0 unknown
	Cost       int        // bytes of memory this sample keeps in use, overhead included

	Owner Owner // takes Data back; nil for data that nobody takes back
}

// Owner takes back the memory of a sample.
type Owner interface{ Release(data []byte) }

// Release gives Data back. The sample must not be used after it. Call it exactly once, on any goroutine.
func (s *Sample) Release() {
	if s.Owner != nil {
		s.Owner.Release(s.Data)
	}
	s.Owner, s.Data = nil, nil
}
