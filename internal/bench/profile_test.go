package main

import "testing"

// BenchmarkRows does the work of every contender under the testing package, for
// its profiles:
//
//	go test -run '^$' -bench 'Rows/http_loopback,_GET$/holdfast' -cpuprofile cpu.out
//
// To compare contenders use the program: they do not disturb each other there.
func BenchmarkRows(b *testing.B) {
	ballast[0] = 1
	for _, r := range rows() {
		if r.memory {
			continue
		}
		b.Run(r.name, func(b *testing.B) {
			for _, c := range r.contenders {
				b.Run(c.name, func(b *testing.B) {
					work := c.setup()
					work(100)
					b.ReportAllocs()
					b.ResetTimer()
					work(b.N)
				})
			}
		})
	}
}
