package shred

type opcode uint8

const (
	opNumber     opcode = iota // nodes only
	opStruct                   // nodes only
	opRun                      // numbers of one kind, one in each of cols
	opNumbers                  // a list of numbers
	opBytes                    // a sequence of bytes
	opFixedBytes               // n bytes
	opString
	opWString
	opTime
	opList        // a list of anything else
	opSkip        // size bytes that are not stored
	opSkipNumbers // a list of numbers of size bytes that is not stored
)

// op is one step of a walk.
type op struct {
	code  opcode
	kind  Kind
	align int  // mask: alignment less 1
	size  int  // bytes of a number
	delim bool // XCDR2: the collection has its length in bytes before it
	col   int
	n     int // opRun: columns; fixed array: elements
	list  int
	min   int // opList: bytes that an element takes at least
	body  []op
}

// emitter makes ops of nodes.
type emitter struct {
	xcdr2       bool
	keep, keepL []bool // as in Program
}

// emit appends the ops of nodes, structs taken apart, runs of numbers of a kind fused.
func (e emitter) emit(ops []op, nodes []node) []op {
	for i := range nodes {
		n := &nodes[i]
		if n.code == opStruct {
			ops = e.emit(ops, n.body)
			continue
		}
		o := e.op(n)
		if k := len(ops) - 1; k >= 0 && o.code == opRun && ops[k].code == opRun && ops[k].kind == o.kind && ops[k].col+ops[k].n == o.col {
			ops[k].n++
			continue
		}
		ops = append(ops, o)
	}
	return ops
}

// op makes the op of a node that is no struct.
func (e emitter) op(n *node) op {
	o := op{code: n.code, kind: n.kind, col: n.col, n: n.n, list: n.list, align: 3}
	switch n.code {
	case opNumber, opNumbers:
		o.size = int(wireSize[n.kind])
		o.align = o.size - 1
		if e.xcdr2 {
			o.align = min(o.align, 3)
		}
		if n.code == opNumber {
			o.code, o.n = opRun, 1
		}
	case opFixedBytes:
		o.align = 0
	case opList:
		o.delim = e.xcdr2
		o.body = e.emit(nil, n.body)
		o.min = minSize(n.body)
		if e.keepL != nil && !e.keepL[n.list] {
			o.list = -1
		}
		return o
	}
	if e.keep == nil || e.keep[n.col] {
		return o
	}
	switch n.code {
	case opNumber:
		o.code = opSkip
	case opFixedBytes:
		o.code, o.size = opSkip, n.n
	case opTime:
		o.code, o.size = opSkip, 8
	case opNumbers:
		o.code = opSkipNumbers
	case opBytes, opString:
		o.code, o.size, o.align, o.n = opSkipNumbers, 1, 0, 0
	case opWString:
		o.code, o.size, o.n = opSkipNumbers, 4, 0
	}
	return o
}

// huge stands for sizes that no payload has.
const huge = 1 << 40

// minSize is the number of bytes that nodes take at least, padding left out.
func minSize(nodes []node) int {
	sum := 0
	for i := range nodes {
		n := &nodes[i]
		switch n.code {
		case opNumber:
			sum += int(wireSize[n.kind])
		case opStruct:
			sum += minSize(n.body)
		case opFixedBytes:
			sum += n.n
		case opTime:
			sum += 8
		case opNumbers, opList:
			if n.n == 0 {
				sum += 4
			} else { // n.n is below 1<<32: no overflow
				sum += n.n * min(minSize(n.body), huge/n.n+1)
			}
		default:
			sum += 4
		}
		sum = min(sum, huge)
	}
	return sum
}
