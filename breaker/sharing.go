package breaker

import (
	"crypto/rand"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Sharing says how the breakers of this process share their state with those of
// other workers. A zero field, but for Store, is its documented default.
type Sharing struct {
	// Store is where the state is. It must not be nil.
	Store Store

	// Space names the fleet: workers that give the same name to the same store
	// share. In a kit zero is the kit's name; elsewhere "holdfast".
	Space string

	// Worker names this process among the others and must differ from theirs.
	// Zero is the host's name and random characters.
	Worker string

	// Refresh is the age at which the local knowledge is read anew, if breakers
	// are in use. Zero is 2 s.
	Refresh time.Duration

	// Timeout is how long the store may take to answer, and so the longest that
	// a call waits which is about to be a probe. Zero is 100 ms.
	Timeout time.Duration

	// Push listens for changes, if the store can tell them, so that an opening
	// reaches this worker in milliseconds and not with the next refresh.
	Push bool

	// Health is called when the store fails, with its error, and with nil when
	// it answers again. It must not block. Nil is none.
	Health func(error)
}

// The defaults of Sharing.
const (
	defaultSpace   = "holdfast"
	defaultRefresh = 2 * time.Second
	defaultTimeout = 100 * time.Millisecond
)

// Check returns nil, or an error that names every bad field.
func (s Sharing) Check() error { return s.check().Err("breaker") }

func (s Sharing) check() check.Faults {
	var fs check.Faults
	if s.Store == nil {
		fs.Add("Store", nil, "must not be nil; without a store there is nothing to share")
	}
	checkTime(&fs, "Refresh", s.Refresh)
	checkTime(&fs, "Timeout", s.Timeout)
	s = s.withDefaults()
	if s.Refresh > 0 && s.Timeout > s.Refresh {
		fs.Add("Timeout", s.Timeout, "must not exceed Refresh = %v", s.Refresh)
	}
	return fs
}

func (s Sharing) withDefaults() Sharing {
	if s.Space == "" {
		s.Space = defaultSpace
	}
	if s.Worker == "" {
		host, _ := os.Hostname()
		s.Worker = host + "-" + rand.Text()[:8]
	}
	def(&s.Refresh, defaultRefresh)
	def(&s.Timeout, defaultTimeout)
	return s
}
