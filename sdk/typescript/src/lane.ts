import type { Attempt } from "./attempt.js";
import type { Task } from "./task.js";

/**
 * A function that stands for an activity. It returns what exact JSON can hold,
 * and throws a Failure to say how it failed. It should end soon after the task's
 * signal is aborted, and must not block the event loop: heartbeats wait for it.
 */
export type Activity = (task: Task) => unknown;

/** A queue that a worker serves. */
export interface QueueOptions {
  /** Functions of the queue that run at once; 10 unless given. */
  concurrency?: number;
  activities: Record<string, Activity>;
}

/** A queue of a worker, with slots of its own. */
export class Lane {
  readonly queue: string;
  readonly slots: number;
  readonly activities: Map<string, Activity>;
  readonly attempts = new Set<Attempt>(); // all that are held
  reports: Attempt[] = []; // those to report, in order of finishing
  asked = 0; // slots that a request under way asks tasks for

  constructor(queue: string, { concurrency = 10, activities }: QueueOptions) {
    this.queue = queue;
    this.slots = concurrency;
    this.activities = new Map(Object.entries(activities));
    if (this.activities.size === 0) {
      throw new TypeError(`the queue ${queue} has no activities: without a name to ask for, the worker would take tasks that it cannot do`);
    }
    if (!(this.slots >= 1)) throw new TypeError("concurrency is the number of functions that run at once: at least 1");
  }

  /** What a request for tasks names. */
  wish(worker: string): object {
    return { worker, queue: this.queue, activities: [...this.activities.keys()] };
  }

  /** Slots to ask tasks for in a poll: those of functions that have just ended are left to their reports. */
  roomToPoll(): number {
    return Math.max(0, this.slots - this.attempts.size - this.asked);
  }

  /** Slots to ask tasks for along with a report. A worker that cannot report takes no more. */
  roomToWant(): number {
    const running = this.attempts.size - this.reports.length;
    return Math.max(0, Math.min(this.slots, 2 * this.slots - this.reports.length) - running - this.asked);
  }

  drop(attempt: Attempt): void {
    this.attempts.delete(attempt);
    this.reports = this.reports.filter((other) => other !== attempt);
  }
}
