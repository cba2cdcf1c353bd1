package main

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/examples/outage/chart"
	"github.com/holdfast-go/holdfast/examples/outage/sim"
	"github.com/holdfast-go/holdfast/retry"
)

// own is a user's policy in a user's scenario.
type own struct {
	file        string // of the policy; "" is [Policy]
	scenario    scenario
	explanation holdfast.Explanation
	results     []result // with the time limit alone, and with the policy
}

// takeOwn runs a policy through a scenario. Without a file it is [Policy].
func takeOwn(ctx context.Context, policyPath, scenarioPath string, seeds int, told func(done, all int)) (*own, error) {
	s, err := loadScenario(scenarioPath)
	if err != nil {
		return nil, err
	}
	kit, err := kitOf(policyPath)
	if err != nil {
		return nil, err
	}
	o := &own{file: policyPath, scenario: s}
	if o.explanation, err = kit.Explain(s.Method); err != nil {
		return nil, err
	}
	if o.explanation.Unread && o.explanation.OneAttempt != "" { // no wire declares anything of a simulated call
		o.explanation.OneAttempt = "nothing declares that " + s.Method + " may be repeated: set safety in the scenario"
	}
	p := o.explanation.Policy
	p.Safety = o.explanation.Safety
	if s.Safety != call.SafetyUnknown {
		p.Safety = s.Safety
		if p.Safety.Repeatable() && !p.Retry.IsOff() && p.Retry.MaxAttempts != 1 {
			o.explanation.OneAttempt = ""
		}
	}
	bare := holdfast.Policy{Safety: p.Safety, Timeout: p.Timeout, Retry: retry.Off(), Breaker: breaker.Off(), Bulkhead: bulkhead.Off()}
	rows := []row{
		{name: "its time limit alone", setup: s.setup(), client: clientOf(bare)},
		{name: "the policy", setup: s.setup(), client: clientOf(p)},
	}
	o.results, err = runAll(ctx, rows, seeds, told)
	return o, err
}

func (o *own) all() []result { return o.results }

// writeText prints the table and what is to be learned of it.
func (o *own) writeText(out io.Writer) error {
	w, s := &keeper{Writer: out}, o.scenario
	fmt.Fprintf(w, `%s, by %s, called %g times a second.
Its dependency answers in %v; %s.
The caller has %d threads and %g other requests a second, B, that take %v. The figures are of %d seeds.

`, s.Method, o.policy(), s.Rate, short(s.Latency), s.Fault, s.Threads, s.OtherRate, short(s.OtherTakes), o.results[0].seeds)
	table(w, o.results)
	fmt.Fprintln(w)
	for _, finding := range findings(o.results[1].client.Policy, o.explanation.OneAttempt, s, &o.results[0], &o.results[1]) {
		wrap(w, finding, 110)
	}
	return w.err
}

// policy says which policy is played.
func (o *own) policy() string {
	e := o.explanation
	standard := holdfast.Origins{Fallback: "Standard", Retry: "Standard", Breaker: "Standard", Timeout: "Standard", Bulkhead: "Standard"}
	switch {
	case o.file == "":
		return "the policy of policies.go"
	case e.Entry != "Default":
		return "the policy of " + e.Entry
	case e.From == standard:
		return "the standard policy (no entry for it in " + o.file + ")"
	}
	return "the default policy (no entry for it in " + o.file + ")"
}

// drawings are those of the scenario.
func (o *own) drawings(ctx context.Context) (map[string]drawing, error) {
	seeds := min(o.results[0].seeds, courseSeeds)
	head := chart.Head{
		Title: o.scenario.Method + ": " + o.scenario.Fault.Kind,
		Note:  o.scenario.Fault.String(),
	}
	course, err := courseOf(ctx, head, []row{o.results[0].row, o.results[1].row}, seeds)
	if err != nil {
		return nil, err
	}
	course.Series[1].Colour = 2
	course.Band.Name = "the fault"
	head.Note = fmt.Sprintf("median of %d runs", o.results[0].seeds)
	drawings := map[string]drawing{"scenario-course.svg": course}
	if o.scenario.OtherRate > 0 {
		bars := barsOf(head, o.results, "the policy")
		bars.Rows[0].Colour = 0
		drawings["scenario-bars.svg"] = bars
	}
	return drawings, nil
}

func clientOf(p holdfast.Policy) sim.Client { return sim.Client{Policy: p} }
