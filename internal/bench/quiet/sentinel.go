// Package quiet starts libraries that would else write logs and measure the machine.
package quiet

import (
	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/core/config"
)

// Sentinel starts what Sentinel needs for breakers with these rules. It is for a process
// of its own: https://sentinelguard.io/en-us/docs/golang/general-configuration.html
func Sentinel(rules ...circuitbreaker.Rule) {
	c := config.NewDefaultConfig()
	c.Sentinel.Log.Logger = noLog{}
	c.Sentinel.Log.Metric.FlushIntervalSec = 0
	c.Sentinel.Stat.System = config.SystemStatConfig{}
	if err := sentinel.InitWithConfig(c); err != nil {
		panic(err)
	}
	loaded := make([]*circuitbreaker.Rule, len(rules))
	for i := range rules {
		loaded[i] = &rules[i]
	}
	if _, err := circuitbreaker.LoadRules(loaded); err != nil {
		panic(err)
	}
}

type noLog struct{}

func (noLog) Debug(string, ...any)        {}
func (noLog) DebugEnabled() bool          { return false }
func (noLog) Info(string, ...any)         {}
func (noLog) InfoEnabled() bool           { return false }
func (noLog) Warn(string, ...any)         {}
func (noLog) WarnEnabled() bool           { return false }
func (noLog) Error(error, string, ...any) {}
func (noLog) ErrorEnabled() bool          { return false }
