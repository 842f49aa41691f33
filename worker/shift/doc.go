// Package shift decides what a worker does and when: for how many tasks it asks,
// which of them needs permission before its call, when leases are extended, what
// is reported, when again, and how a worker comes to its end. It makes no call
// itself. Time comes in as an argument, answers come in as they are, and what
// comes out is to be done by its user: package worker with goroutines against a
// server, the simulator step by step.
//
//	req, in := s.Poll(queue, now)          // ask for tasks, or look again after in
//	attempts := s.Polled(queue, …)         // to perform
//	cmd := s.Begin(attempt)                // where Attempt.Asks says so
//	verdict, in, err := s.Begun(attempt, …)// call, forget, or ask again after in
//	s.Succeeded(attempt, output)           // or s.Failed: the call has ended
//	batch, in := s.Report(now)             // send, or look again after in
//	attempts, errs := s.Reported(batch, …) // more to perform
//	round, in := s.Beat(now)               // extend leases, or look again after in
//	endings := s.Beaten(round, …)          // contexts to end
//	s.Stop(now)                            // take no more
//	phase, in := s.Drain(now)              // until all is over
//
// A Shift is not safe for concurrent use: its user holds a lock around each call,
// and none of them takes long.
package shift
