// Package plugintest checks that a storage format keeps the contract of package plugin: [Run] holds one case for every
// obligation stated there, [Bench] the benchmarks, and [NewMemory] is the reference driver, small enough to be read as
// a second description of the contract. A format's tests adopt all of it in a few lines:
//
//	func TestConformance(t *testing.T)      { plugintest.Run(t, Driver{}, plugintest.Options{}) }
//	func BenchmarkStorage(b *testing.B)     { plugintest.Bench(b, Driver{}) }
package plugintest
