package engine

import (
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// An Observer is told what the engine did, for metrics. Each field may be nil.
// The functions are called from the parts themselves, also at the same time:
// they must be quick and safe for concurrent use.
type Observer struct {
	// Committed is told of each commit that reached the store.
	Committed func(Batch)
	// Quarantined is told of a run that cannot be read or decided.
	Quarantined func(tenant ringi.Tenant, run ringi.RunID, err error)
	// Lapsed is told how many hand-overs lapsed that nobody confirmed.
	Lapsed func(n int)
	// Expired is told of each attempt that ran out of a limit.
	Expired func(why ringi.Expiry)
	// Fired is told how late each timer fired.
	Fired func(late time.Duration)
}

// A Batch is one commit.
type Batch struct {
	Commands int           // that it carried
	Writes   []store.Write // as they were sent; must not be changed or kept
	Lost     int           // writes that lost their race
}

func (o *Observer) committed(b Batch) {
	if o.Committed != nil {
		o.Committed(b)
	}
}

func (o *Observer) quarantined(key store.Key, err error) {
	if o.Quarantined != nil {
		o.Quarantined(key.Tenant, key.Run, err)
	}
}

func (o *Observer) lapsed(n int) {
	if o.Lapsed != nil && n > 0 {
		o.Lapsed(n)
	}
}

func (o *Observer) expired(why ringi.Expiry) {
	if o.Expired != nil {
		o.Expired(why)
	}
}

func (o *Observer) fired(late time.Duration) {
	if o.Fired != nil {
		o.Fired(late)
	}
}
