package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/check"
)

func TestC1_DefaultsAreFilled(t *testing.T) {
	for name, tc := range map[string]struct{ in, want Config }{
		"zero": {Config{}, Config{
			Window: Window{Span: 20 * time.Second, Buckets: 10}, MinCalls: 10, FailureRate: 0.5,
			Cooldown: 5 * time.Second, MaxCooldown: 30 * time.Second, CooldownFactor: 2, Jitter: 0.2,
			Probes: 1, ProbeSuccesses: 3, ProbeTimeout: 10 * time.Second,
		}},
		"a count window below MinCalls": {Config{Window: Window{Calls: 4}}, Config{
			Window: Window{Calls: 4}, MinCalls: 4, FailureRate: 0.5,
			Cooldown: 5 * time.Second, MaxCooldown: 30 * time.Second, CooldownFactor: 2, Jitter: 0.2,
			Probes: 1, ProbeSuccesses: 3, ProbeTimeout: 10 * time.Second,
		}},
		"a rule that needs no window": {Config{Consecutive: 5, Cooldown: time.Second, Jitter: NoJitter}, Config{
			Consecutive: 5, MinCalls: 10,
			Cooldown: time.Second, MaxCooldown: 6 * time.Second, CooldownFactor: 2, Jitter: NoJitter,
			Probes: 1, ProbeSuccesses: 3, ProbeTimeout: 10 * time.Second,
		}},
		"parts": {Config{SlowCall: time.Second, Stall: Stall{After: time.Second}, RampUp: time.Second, ProbeRate: 0.5, Probes: 4}, Config{
			Window: Window{Span: 20 * time.Second, Buckets: 10}, MinCalls: 10, SlowCall: time.Second, SlowRate: 0.5,
			Stall:    Stall{After: time.Second, Calls: 10},
			Cooldown: 5 * time.Second, MaxCooldown: 30 * time.Second, CooldownFactor: 2, Jitter: 0.2,
			Probes: 4, ProbeRate: 0.5, ProbeTimeout: 10 * time.Second, RampUp: time.Second, RampFrom: 0.1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, tc.in.Check())
			require.Equal(t, tc.want, tc.in.WithDefaults())
		})
	}
	require.Equal(t, time.Duration(math.MaxInt64), Config{Cooldown: math.MaxInt64 / 2}.WithDefaults().MaxCooldown)
	require.Equal(t, time.Hour, compile(Config{Cooldown: time.Hour, Jitter: NoJitter}).cooldown(1, -0.9, 0))
}

// Where the case refuses a zero, C1 holds: in code a zero is the default.
func TestD091_EveryContradictionIsNamed(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		c     Config
		field string
		text  string
	}{
		{Config{Window: Window{Calls: 10}, MinCalls: 11}, "MinCalls", "must not exceed Window.Calls = 10"},
		{Config{MinCalls: -1}, "MinCalls", ""},
		{Config{FailureRate: -1}, "FailureRate", "must be a share"},
		{Config{FailureRate: 1.5}, "FailureRate", "did you mean 0.015?"},
		{Config{FailureRate: 50}, "FailureRate", "did you mean 0.5?"},
		{Config{FailureRate: 1000}, "FailureRate", "must be a share"},
		{Config{FailureRate: nan}, "FailureRate", ""},
		{Config{FailureRate: math.Inf(1)}, "FailureRate", ""},
		{Config{FailureRate: 1e-10}, "FailureRate", ""},
		{Config{SlowRate: 0.5}, "SlowRate", "needs SlowCall"},
		{Config{SlowRate: 2, SlowCall: 1}, "SlowRate", ""},
		{Config{SlowCall: -1}, "SlowCall", "must not be negative"},
		{Config{Failures: -1}, "Failures", ""},
		{Config{Failures: 30_001}, "Failures", "0 (the default) to 30000"},
		{Config{Failures: 11, Window: Window{Calls: 10}}, "Failures", "must not exceed"},
		{Config{Consecutive: -1}, "Consecutive", ""},
		{Config{Consecutive: 2001}, "Consecutive", ""},
		{Config{Window: Window{Calls: -1}}, "Window.Calls", ""},
		{Config{Window: Window{Calls: 1 << 20}}, "Window.Calls", ""},
		{Config{Window: Window{Span: -1}}, "Window.Span", ""},
		{Config{Window: Window{Span: 5}}, "Window.Span", "microsecond"},
		{Config{Window: Window{Calls: 5, Span: time.Second}}, "Window.Span", "together with Window.Calls"},
		{Config{Window: Window{Buckets: -1}}, "Window.Buckets", ""},
		{Config{Window: Window{Buckets: 1}}, "Window.Buckets", "2 to 1000"},
		{Config{Window: Window{Calls: 5, Buckets: 5}}, "Window.Buckets", "together with Window.Calls"},
		{Config{Stall: Stall{After: -1}}, "Stall.After", ""},
		{Config{Stall: Stall{Calls: 5}}, "Stall.Calls", "needs Stall.After"},
		{Config{Stall: Stall{After: 1, Calls: -5}}, "Stall.Calls", ""},
		{Config{Cooldown: -1}, "Cooldown", ""},
		{Config{MaxCooldown: time.Second}, "MaxCooldown", "below Cooldown = 5s"},
		{Config{MaxCooldown: -1}, "MaxCooldown", ""},
		{Config{CooldownFactor: 0.5}, "CooldownFactor", ""},
		{Config{CooldownFactor: nan}, "CooldownFactor", ""},
		{Config{Jitter: 2}, "Jitter", "NoJitter"},
		{Config{Jitter: -0.5}, "Jitter", ""},
		{Config{Jitter: nan}, "Jitter", ""},
		{Config{Probes: -1}, "Probes", ""},
		{Config{ProbeSuccesses: -1}, "ProbeSuccesses", ""},
		{Config{Probes: 3, ProbeSuccesses: 4, ProbeRate: 0.5}, "ProbeSuccesses", "must not exceed Probes = 3"},
		{Config{ProbeRate: 1.1}, "ProbeRate", ""},
		{Config{ProbeTimeout: -1}, "ProbeTimeout", ""},
		{Config{ProbeLatency: -1}, "ProbeLatency", ""},
		{Config{ProbeLatency: 11 * time.Second, ProbeTimeout: 10 * time.Second}, "ProbeLatency", "must not exceed ProbeTimeout = 10s"},
		{Config{RampUp: -1}, "RampUp", ""},
		{Config{RampUp: 1, RampFrom: 1}, "RampFrom", ""},
		{Config{RampUp: 1, RampFrom: nan}, "RampFrom", ""},
		{Config{RampFrom: 0.5}, "RampFrom", "needs RampUp"},
		{Config{Scope: 3}, "Scope", ""},
	} {
		faults := check.Of(tc.c.Check())
		require.Len(t, faults, 1, tc.field)
		require.Equal(t, tc.field, faults[0].Field)
		require.Contains(t, faults[0].Error(), tc.text)
		_, err := New("x", tc.c)
		require.ErrorContains(t, err, "breaker: "+tc.field)
		_, err = NewGroup(tc.c, 0)
		require.Error(t, err)
	}
	// The default of ProbeTimeout is a kit's affair, or else of who makes the breaker.
	late := Config{ProbeLatency: 11 * time.Second}
	require.NoError(t, late.Check())
	_, err := New("x", late)
	require.ErrorContains(t, err, "breaker: ProbeLatency = 11s: must not exceed ProbeTimeout = 10s")
	_, err = NewGroup(late, 0)
	require.ErrorContains(t, err, "ProbeLatency = 11s")
	require.ErrorContains(t, newGroup(t, Config{}, 0).Update(late), "ProbeLatency = 11s")
	require.ErrorContains(t, newGroup(t, Config{}, 0).For("x").Update(late), "ProbeLatency = 11s")
	// One at a time with three in a row is valid, and so is everything unset.
	for _, c := range []Config{{}, {Probes: 1, ProbeSuccesses: 3}, {CooldownFactor: 1, Jitter: NoJitter}} {
		require.NoError(t, c.Check())
	}
	faults := check.Of(Config{FailureRate: 2, Cooldown: -1, Probes: -1}.Check())
	require.Len(t, faults, 3)
	_, err = NewGroup(Config{}, -1)
	require.ErrorContains(t, err, "maxKeys = -1")
}

func TestC1_OffSurvivesCopying(t *testing.T) {
	off := *Off()
	copied := off
	require.True(t, copied.IsOff())
	require.NoError(t, copied.Check())
	require.False(t, new(Config).IsOff())
	var none *Config
	require.False(t, none.IsOff())
	_, err := New("x", copied)
	require.ErrorContains(t, err, "switched off")
	_, err = NewGroup(copied, 0)
	require.ErrorContains(t, err, "switched off")
}

func TestB8_CooldownsCannotOverflow(t *testing.T) {
	r := compile(Config{Cooldown: time.Hour, MaxCooldown: math.MaxInt64, CooldownFactor: 1000, Jitter: 1})
	for _, nth := range []int{1, 2, 10, 1_000_000} {
		for _, spread := range []float64{-1, 0, 1} {
			d := r.cooldown(nth, spread, math.MaxInt64)
			require.Positive(t, d)
			require.LessOrEqual(t, d, time.Duration(math.MaxInt64/2))
		}
	}
	require.Equal(t, 1000*time.Hour, r.cooldown(2, 0, 0))
}

func TestNames(t *testing.T) {
	require.Equal(t, "half_open", HalfOpen.String())
	require.Equal(t, "state(9)", State(9).String())
	require.Equal(t, "throttled", Throttled.String())
	require.Equal(t, "failure_rate", ReasonFailureRate.String())
	require.Equal(t, "reset", ReasonReset.String())
	require.Equal(t, "forced_open", CauseForced.String())
	require.Equal(t, "two_level", TwoLevel.String())
	require.Equal(t, "neutral", ProbeNeutral.String())
}

// What a breaker tells of its Config can be put in force, and is the same.
func TestC1_TheConfigInForceIsAConfig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := drawConfig(t)
		b, err := New("db", c)
		require.NoError(t, err)
		told := b.Inspect().Config
		require.NoError(t, b.Update(told))
		require.Equal(t, told, b.Inspect().Config)
		require.Equal(t, told, told.WithDefaults())
		require.Equal(t, c.Jitter == NoJitter, told.Jitter == NoJitter)
	})
}
