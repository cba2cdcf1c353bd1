package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
)

// The values of attributes that stand for several.
const (
	evictedKey = "evicted" // breakers that were dropped
	otherKey   = "other"   // those beyond MaxKeys or MaxMethods
)

// kitSeries observes one kit. It keeps the attribute sets that it has made, for
// to make them is what costs.
type kitSeries struct {
	kit     *holdfast.Kit
	maxKeys int
	methods *methodNames
	ledger  ledger
	round   int // of collection
	made    map[series]metric.MeasurementOption
	used    map[series]int // the round in which it was last used
}

// series is one set of attributes: the name of what is observed, and a word. Which
// attributes these are the instrument says.
type series struct{ by, name, as, word string }

func (k *kitSeries) attrs(by, name, as, word string) metric.MeasurementOption {
	s := series{by, name, as, word}
	k.used[s] = k.round
	if set, ok := k.made[s]; ok {
		return set
	}
	kvs := []attribute.KeyValue{attribute.String("kit", k.kit.Name())}
	if by != "" {
		kvs = append(kvs, attribute.String(by, redact(name)))
	}
	if as != "" {
		kvs = append(kvs, attribute.String(as, word))
	}
	set := metric.WithAttributeSet(attribute.NewSet(kvs...))
	k.made[s] = set
	return set
}

func (k *kitSeries) observe(in *instruments, o metric.Observer) {
	if k.made == nil {
		k.made, k.used = map[series]metric.MeasurementOption{}, map[series]int{}
	}
	k.round++
	k.observeBreakers(in, o)
	k.observeCalls(in, o)
	k.observeBulkheads(in, o)
	k.observeBudgets(in, o)
	k.observeStore(in, o)
	for s, round := range k.used {
		if round != k.round { // its key was evicted
			delete(k.used, s)
			delete(k.made, s)
		}
	}
}

func (k *kitSeries) observeBulkheads(in *instruments, o metric.Observer) {
	left := k.maxKeys
	var inUse, waiting, limit int64
	for key, b := range k.kit.Bulkheads() {
		used, queued := int64(b.InUse()), int64(b.Waiting())
		if used+queued == 0 {
			continue
		}
		if left--; left < 0 {
			inUse, waiting, limit = inUse+used, waiting+queued, limit+int64(b.Limit())
			continue
		}
		k.observeBulkhead(in, o, key, used, queued, int64(b.Limit()))
	}
	if left < 0 {
		k.observeBulkhead(in, o, otherKey, inUse, waiting, limit)
	}
}

func (k *kitSeries) observeBulkhead(in *instruments, o metric.Observer, key string, inUse, waiting, limit int64) {
	set := k.attrs("bulkhead", key, "", "")
	o.ObserveInt64(in.inUse, inUse, set)
	o.ObserveInt64(in.waiting, waiting, set)
	o.ObserveInt64(in.limit, limit, set)
}

func (k *kitSeries) observeBudgets(in *instruments, o metric.Observer) {
	left := k.maxKeys
	other := 0.0
	for key, b := range k.kit.Budgets() {
		if b == nil || b.Full() {
			continue
		}
		if left--; left < 0 {
			other += b.Tokens()
			continue
		}
		o.ObserveFloat64(in.tokens, b.Tokens(), k.attrs("budget", key, "", ""))
	}
	if left < 0 {
		o.ObserveFloat64(in.tokens, other, k.attrs("budget", otherKey, "", ""))
	}
}

// observeStore observes what the kit shares with others, if it does.
func (k *kitSeries) observeStore(in *instruments, o metric.Observer) {
	fleet := k.kit.Fleet()
	if fleet == nil {
		return
	}
	s := fleet.Stats()
	up := int64(0)
	if s.Answering {
		up = 1
	}
	o.ObserveInt64(in.storeUp, up, k.attrs("", "", "", ""))
	o.ObserveInt64(in.storeFailures, int64(s.Failures), k.attrs("", "", "", ""))
	o.ObserveInt64(in.storeProbes, int64(s.ProbesGranted), k.attrs("", "", "outcome", "granted"))
	o.ObserveInt64(in.storeProbes, int64(s.ProbesHeld), k.attrs("", "", "outcome", "held_elsewhere"))
	o.ObserveInt64(in.storeProbes, int64(s.ProbesUnlocked), k.attrs("", "", "outcome", "unasked"))
}
