package rtps

// ReaderConfig describes a reader.
type ReaderConfig struct {
	Topic, Type string // as on the wire; both must be equal to the writer's
	QoS         QoS    // Representation nil: announced as XCDR1 and XCDR2, since the payload is only passed on
	UserData    []byte

	// Accept is asked before a compatible remote writer is matched, under the participant's mutex: it must not call the
	// participant. A writer refused is acknowledged, so that it does not wait for us, and its data is dropped silently.
	// nil accepts all.
	Accept func(Endpoint) bool

	// Related asks for Sample.Related.
	Related bool

	// Handler gets every sample, in order of each writer. It runs on a receive goroutine with the participant's mutex
	// held: it must not block and must not call the participant or its readers and writers.
	Handler func(Sample)

	// Offer is asked before Handler where samples are acknowledged, and may refuse: then nothing of that writer is taken or
	// acknowledged any more until Reader.Resume, and a writer that keeps all has to wait. What it gives up meanwhile is lost,
	// and what is here already when it leaves goes to Handler. The sample is the caller's only where Offer returns true.
	// The rules of Handler hold. nil refuses nothing.
	Offer func(Sample) bool
}

// WriterConfig describes a writer.
type WriterConfig struct {
	Topic, Type string
	QoS         QoS // Representation nil: XCDR1; of a longer list the first one is announced
	UserData    []byte

	// Accept is asked before a compatible remote reader is matched, and again whenever it or its participant announces
	// something new, under the participant's mutex: it must not call the participant. No sample ever goes to a reader that
	// was refused; it is told that there are none. nil accepts all.
	Accept func(Endpoint, Peer) bool

	// Related says that WriteRelated will be used: datagrams keep room for what it adds.
	Related bool

	// Window bounds the bytes of samples that not every reliable reader has acknowledged, default 8 MiB. One sample may
	// be larger.
	Window int

	// FragmentSize is the most payload bytes in one datagram, a multiple of 4; 0 chooses by path: 60000 to readers on
	// this host, else what fits a frame of the interface, 1344 with an MTU of 1500.
	FragmentSize int
}
