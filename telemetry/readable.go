package telemetry

import (
	"reflect"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// readable reports whether what is given to p may ever be read. It is true if in
// doubt. The API has no way to ask: an instrument says whether it is enabled, but one
// that a view drops says that it is not, while others are.
func readable(p metric.MeterProvider) bool {
	if placeholder(p) {
		now := otel.GetMeterProvider()
		if placeholder(now) {
			return false
		}
		p = now // to which the placeholder hands on
	}
	_, drops := p.(noop.MeterProvider)
	return !drops
}

// placeholder reports whether p is what stands for the global provider before the
// program has set one, and hands on to that afterwards.
func placeholder(p metric.MeterProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}
