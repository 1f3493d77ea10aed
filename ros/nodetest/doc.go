// Package nodetest is the conformance suite of [ros.Node]: what every transport has to do alike. A transport runs it
// from a test of its own with a factory of nodes:
//
//	func TestConformance(t *testing.T) {
//		nodetest.Run(t, nodetest.Factory{New: func(t *testing.T, n int) []ros.Node { … }})
//	}
package nodetest
