package answers

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/call"
)

// cacheName is the name under which [fallback.MarkedBy] knows the marks.
const cacheName = "holdfast"

// CacheStatus is the mark of a stale answer: "holdfast; hit; ttl=-20;
// detail=unavailable". It is from the cache; ttl is for how many seconds more it
// is fresh, negative for how long it has not been; detail is the class of the
// failure that it stands in for.
func (e Entry) CacheStatus(class call.Class) string {
	return cacheName + "; hit; ttl=" + strconv.FormatInt(seconds(e.Fresh)-seconds(e.Age), 10) + "; detail=" + class.String()
}

// AgeSeconds returns the value of Age.
func (e Entry) AgeSeconds() string { return strconv.FormatInt(seconds(e.Age), 10) }

// ComputedStatus is the mark of Policy.Answer's answer: it is not from the
// dependency, and not from the cache.
func ComputedStatus(class call.Class) string {
	return cacheName + "; fwd=miss; detail=computed-for-" + class.String()
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
