package main

import (
	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"

	"github.com/holdfast-go/holdfast/internal/bench/quiet"
)

// The rules as Sentinel says them: a breaker has one, and a resource has a breaker for
// each.
var (
	sentinelWindow = circuitbreaker.Rule{
		Resource: "bench", Strategy: circuitbreaker.ErrorRatio, Threshold: 0.5, MinRequestAmount: 10,
		StatIntervalMs: uint32(windowSpan.Milliseconds()), StatSlidingWindowBucketCount: 10, RetryTimeoutMs: 5000,
	}
	sentinelSlow = func() circuitbreaker.Rule {
		slow := sentinelWindow
		slow.Strategy, slow.MaxAllowedRtMs = circuitbreaker.SlowRequestRatio, 1000
		return slow
	}()
)

// sentinelClosed: https://sentinelguard.io/en-us/docs/golang/circuit-breaking.html
// The chain of slots is the usual one, with flow control and the rest, unless it is
// only that of breakers.
func sentinelClosed(breakersOnly bool, fails often, rules ...circuitbreaker.Rule) contender {
	name := "sentinel"
	if breakersOnly {
		name = "sentinel, breakers only"
	}
	return contender{name: name, setup: func() work {
		quiet.Sentinel(rules...)
		chain := sentinel.GlobalSlotChain()
		if breakersOnly {
			chain = base.NewSlotChain()
			chain.AddRuleCheckSlot(circuitbreaker.DefaultSlot)
			chain.AddStatSlot(circuitbreaker.DefaultMetricStatSlot)
		}
		return again(func(n int) {
			for i := range n {
				e, refused := sentinel.Entry("bench", sentinel.WithSlotChain(chain))
				if refused != nil {
					panic(refused)
				}
				if err := fails.result(i + 1); err != nil {
					sentinel.TraceError(e, err)
				}
				e.Exit()
			}
		})
	}}
}

// sentinelOpen refuses every call.
var sentinelOpen = contender{name: "sentinel", setup: func() work {
	rule := sentinelWindow
	rule.RetryTimeoutMs = uint32(long.Milliseconds())
	quiet.Sentinel(rule)
	for range rule.MinRequestAmount {
		e, _ := sentinel.Entry("bench")
		sentinel.TraceError(e, errDown)
		e.Exit()
	}
	return again(func(n int) {
		for range n {
			if _, refused := sentinel.Entry("bench"); refused == nil {
				panic("admitted")
			}
		}
	})
}}
