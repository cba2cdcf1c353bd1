package telemetry

import (
	"context"
	"log/slog"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
)

// Logs says where the kits' events are logged: each change of a breaker's state as
// information, with the reason that was given if somebody forced it, and each probe
// that failed as a warning, for that is what is worth an alert: the dependency is
// still down. What a breaker in shadow would have done is marked with shadow=true, and
// no warning. No call is logged.
type Logs struct {
	// Logger takes the records. Nil is slog.Default, as it is when something is
	// logged.
	Logger *slog.Logger
}

// Attach logs the events of the kits until stop is called. It panics if a kit is
// nil.
func (c Logs) Attach(kits ...*holdfast.Kit) (stop func()) {
	return attach(kits, func(k *holdfast.Kit) holdfast.Hooks {
		kit := slog.String("kit", k.Name())
		return holdfast.Hooks{
			Transition: func(t breaker.Transition) {
				text := "holdfast: breaker "
				if t.Shadow {
					text = "holdfast: shadow breaker "
				}
				c.log(slog.LevelInfo, text+stateWords[t.To], append(changeAttrs(t), kit))
			},
			ProbeEnded: func(e breaker.ProbeEnd) {
				if !e.Outcome.Failed() {
					return
				}
				attrs := []slog.Attr{
					kit, slog.String("breaker", redact(e.Key)), slog.String("outcome", e.Outcome.String()), slog.Duration("took", e.Took),
				}
				if e.Shadow {
					c.log(slog.LevelInfo, "holdfast: shadow probe failed", append(attrs, slog.Bool("shadow", true)))
					return
				}
				c.log(slog.LevelWarn, "holdfast: probe failed", attrs)
			},
		}
	})
}

var stateWords = map[breaker.State]string{
	breaker.Closed: "closed", breaker.Open: "opened", breaker.HalfOpen: "half-open",
	breaker.ForcedOpen: "forced open", breaker.Disabled: "disabled",
}

func changeAttrs(t breaker.Transition) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("breaker", redact(t.Key)), slog.String("from", t.From.String()),
		slog.String("to", t.To.String()), slog.String("reason", t.Reason.String()),
	}
	if t.Shadow {
		attrs = append(attrs, slog.Bool("shadow", true))
	}
	if t.Note != "" {
		attrs = append(attrs, slog.String("note", t.Note))
	}
	if t.Cooldown > 0 {
		attrs = append(attrs, slog.Duration("cooldown", t.Cooldown))
	}
	if c := t.Counts; c.Results > 0 {
		attrs = append(attrs, slog.Int("results", c.Results), slog.Int("failures", c.Failures))
		if c.Slow > 0 {
			attrs = append(attrs, slog.Int("slow", c.Slow))
		}
	}
	return attrs
}

func (c Logs) log(level slog.Level, text string, attrs []slog.Attr) {
	l := c.Logger
	if l == nil {
		l = slog.Default()
	}
	l.LogAttrs(context.Background(), level, text, attrs...)
}
