package redisstore

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

// The scripts. Each is one atomic step; what they share comes first in each.
var (
	//go:embed prelude.lua
	prelude string
	//go:embed change.lua
	change string
	//go:embed changes.lua
	changesText string
	//go:embed open.lua
	openText string
	//go:embed probe.lua
	probeText string
	//go:embed settle.lua
	settleText string
	//go:embed force.lua
	forceText string

	changes = redis.NewScript(prelude + changesText)
	open    = redis.NewScript(prelude + change + openText)
	probe   = redis.NewScript(prelude + change + probeText)
	settle  = redis.NewScript(prelude + change + settleText)
	force   = redis.NewScript(prelude + change + forceText)
)
