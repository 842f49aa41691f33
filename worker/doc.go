// Package worker runs activities that are written in Go: it takes tasks from a
// ringi.Service, calls the function that is registered for each, and reports
// what became of it. The Service may be an engine in this process or a client
// of one far away; the code is the same.
//
//	charge := worker.Func("payment.charge", func(ctx context.Context, in ChargeIn) (ChargeOut, error) {
//		id, err := bank.Charge(ctx, worker.Key(ctx), in.Customer, in.Amount)
//		if errors.Is(err, bank.ErrDeclined) {
//			return ChargeOut{}, worker.Fail("card_declined", "the bank said no")
//		}
//		return ChargeOut{ChargeID: id}, err
//	})
//	w, err := worker.New(worker.Config{
//		Service: service,
//		Queues:  []worker.Queue{{Activities: []worker.Activity{charge}}},
//	})
//	err = w.Run(ctx) // until ctx ends, and then until what runs has finished
//
// # The life of a task
//
// A task comes from a long poll, or with the answer to a completion. When its
// effect must not repeat (Task.Begin), the worker first asks for permission,
// and drops the task when that is refused. While the function runs, heartbeats
// extend its lease: the first within two seconds, then three in each lease, all
// tasks of the worker in one call. The function's context ends at the attempt's
// time-out, when the lease was lost, when the run is being undone, and when the
// worker has waited long enough for it at the end; context.Cause says which.
//
// What a function answers is reported until the server has taken it, for as
// long as the process lives. At most one report is under way; whatever finishes
// meanwhile goes into the next. Until it is taken the lease is extended, so that
// a server that was away finds everything as it was. A worker never decides
// that an attempt is over: only the engine does, and says so to the heartbeat.
//
// # Failures
//
// A function fails with a *Failure, or with any other error, which then counts
// as one that another attempt may mend and that may have had its effect. A panic
// is such an error too. Fail is for a definite no.
package worker
