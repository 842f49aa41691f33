import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import { Attempt, BATCH_BYTES, textOf } from "./attempt.js";
import { Client } from "./client.js";
import { Cancelled, Failure, RingiError } from "./error.js";
import { stringify } from "./exact.js";
import { nameOf, type Task } from "./task.js";
import { Bell, sleep } from "./time.js";
import { ANSWER_MS, pauseAfter } from "./wire.js";

const LONG_POLL_MS = 20_000; // that a poll waits for its first task
const QUICK_POLL_MS = 100; // an empty poll that comes back sooner is of a server that stops
const BEAT_ANSWER_MS = 5_000; // a heartbeat is given up after that, so that the next comes in time
const BEAT_AGAIN_MS = 1_000; // and is tried again after that
const BEATS_TOGETHER_MS = 250; // how much earlier than due a beat goes along with others
const LAST_WORD_MS = 2_000; // for functions to end that were told to, and for their reports
const MOST_AT_ONCE = 500; // items in one request

/**
 * A function that stands for an activity. It returns what exact JSON can hold,
 * and throws a Failure to say how it failed. It should end soon after the task's
 * signal is aborted, and must not block the event loop: heartbeats wait for it.
 */
export type Activity = (task: Task) => unknown;

export interface WorkerOptions {
  client?: Client;
  /** "default" unless given. */
  queue?: string;
  /** Tells this process from others; drawn unless given. */
  name?: string;
  /** Functions that run at once; 10 unless given. */
  concurrency?: number;
  /** How long a worker that is stopped waits for what runs; 30,000 unless given. */
  drainMs?: number;
  activities: Record<string, Activity>;
  /** Sees what went wrong and was dealt with; console.warn unless given. */
  log?: (message: string) => void;
}

/** What the server says of one item. */
interface Answer {
  outcome?: string;
  cancel?: boolean;
  error?: { code: string; message: string; retryable: boolean };
}

/**
 * Takes tasks of one queue, calls functions, and reports what became of them.
 * Three loops serve the server, so that no two requests of a kind are under way:
 * one polls, one reports, one extends leases.
 */
export class Worker {
  readonly name: string;
  readonly queue: string;

  private readonly client: Client;
  private readonly activities: Map<string, Activity>;
  private readonly slots: number;
  private readonly drainMs: number;
  private readonly log: (message: string) => void;

  private readonly changed = new Bell();
  private readonly attempts = new Set<Attempt>(); // all that are held
  private reports: Attempt[] = []; // those to report, in order of finishing
  private asked = 0; // slots that a request under way asks tasks for
  private readonly stopping = new AbortController(); // takes no more tasks
  private readonly ended = new AbortController(); // says nothing more

  constructor(options: WorkerOptions) {
    this.name = options.name ?? `node-${hostname().slice(0, 100)}-${process.pid}-${randomUUID().slice(0, 8)}`;
    this.queue = options.queue ?? "default";
    this.client = options.client ?? new Client();
    this.activities = new Map(Object.entries(options.activities));
    this.slots = options.concurrency ?? 10;
    this.drainMs = options.drainMs ?? 30_000;
    this.log = options.log ?? ((message) => console.warn(`ringi: ${message}`));
    if (this.activities.size === 0) throw new TypeError("the worker has no activities: without a name to ask for, it would take tasks that it cannot do");
    if (!(this.slots >= 1)) throw new TypeError("concurrency is the number of functions that run at once: at least 1");
  }

  /**
   * Work until `stop`, SIGTERM or SIGINT; then take no more tasks, wait for what
   * runs, and return whether all was reported. A second signal does what it would
   * do without a worker. May be called once.
   */
  async run(): Promise<boolean> {
    const stop = () => {
      process.removeListener("SIGTERM", stop);
      process.removeListener("SIGINT", stop);
      this.stop();
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
    const loops = Promise.all([this.poll(), this.report(), this.beat()]);
    try {
      await Promise.race([loops, this.stopped()]);
      return await this.finish();
    } finally {
      stop();
      this.ended.abort();
      this.changed.ring();
      for (const attempt of this.attempts) attempt.close();
    }
  }

  /** Let `run` come to its end. */
  stop(): void {
    this.stopping.abort();
    this.changed.ring();
  }

  private async stopped(): Promise<void> {
    await this.changed.until(() => this.stopping.signal.aborted);
  }

  private async finish(): Promise<boolean> {
    const idle = () => this.attempts.size === 0;
    if (await this.changed.until(idle, this.drainMs)) return true;
    for (const attempt of this.attempts) attempt.cancel("stopping");
    if (await this.changed.until(idle, LAST_WORD_MS)) return true;
    this.log(`stopped with ${this.attempts.size} attempts that were not reported`);
    return false;
  }

  // Tasks come in.

  private async poll(): Promise<void> {
    const stopping = this.stopping.signal;
    for (let failures = 0; ; ) {
      await this.changed.until(() => stopping.aborted || this.roomToPoll() > 0);
      if (stopping.aborted) return;
      const max = this.roomToPoll();
      this.asked += max;
      const began = performance.now();
      let tasks: Attempt[] = [];
      let error: RingiError | undefined;
      try {
        ({ tasks } = await this.ask("poll", { ...this.wish(), max, waitMs: LONG_POLL_MS }, [], ANSWER_MS + LONG_POLL_MS, stopping));
      } catch (trouble) {
        error = asRingiError(trouble);
      }
      this.take(tasks, max);
      if (!error && (tasks.length > 0 || performance.now() - began >= QUICK_POLL_MS)) {
        failures = 0;
        continue;
      }
      if (error && !stopping.aborted) this.log(`poll of queue ${this.queue}: ${error}`);
      await sleep(pauseAfter(++failures, error), stopping);
    }
  }

  private wish(): object {
    return { worker: this.name, queue: this.queue, activities: [...this.activities.keys()] };
  }

  /** Slots to ask tasks for in a poll: those of functions that have just ended are left to their reports. */
  private roomToPoll(): number {
    return Math.max(0, this.slots - this.attempts.size - this.asked);
  }

  /** Slots to ask tasks for along with a report. A worker that cannot report takes no more. */
  private roomToWant(): number {
    if (this.stopping.signal.aborted) return 0;
    const running = this.attempts.size - this.reports.length;
    return Math.max(0, Math.min(this.slots, 2 * this.slots - this.reports.length) - running - this.asked);
  }

  /** Give asked slots back and call a function for each task that came. */
  private take(tasks: Attempt[], asked: number): void {
    this.asked -= asked;
    for (const attempt of tasks) {
      this.attempts.add(attempt);
      void this.perform(attempt);
    }
    this.changed.ring();
  }

  // A task is done.

  private async perform(attempt: Attempt): Promise<void> {
    const { task } = attempt;
    if (task.begin && !(await this.permitted(attempt))) return this.drop(attempt);
    try {
      const activity = this.activities.get(task.activity);
      if (!activity) throw new Failure("no_handler", `this worker has no activity ${task.activity}`, { retryable: true, applied: "no" });
      attempt.completed(await activity(task));
    } catch (error) {
      if (!(error instanceof Failure || error instanceof Cancelled)) {
        this.log(`${task.activity} of run ${task.run}: ${(error instanceof Error && error.stack) || textOf(error)}`);
      }
      attempt.threw(error);
    }
    this.reports.push(attempt);
    this.changed.ring();
  }

  /** Ask for permission to make a call that must not repeat, until there is an answer: that to a repeated question is the same. */
  private async permitted(attempt: Attempt): Promise<boolean> {
    const { task } = attempt;
    for (let failures = 1; ; failures++) {
      try {
        const { answers } = await this.ask("begin", { worker: this.name }, [nameOf(task)]);
        const { outcome, error } = answers[0]!; // ask counted them
        if (!error) {
          attempt.begun();
          this.changed.ring();
          return outcome === "accepted" || outcome === "repeated";
        }
        if (!error.retryable) {
          this.log(`begin of ${task.run} ${task.step} was refused: ${error.message}`);
          return false;
        }
      } catch (trouble) {
        const error = asRingiError(trouble);
        if (error.forGood) {
          this.log(`begin of ${task.run} ${task.step}: ${error}`);
          return false;
        }
      }
      await sleep(pauseAfter(failures), task.signal);
      if (task.signal.aborted || this.ended.signal.aborted) return false;
    }
  }

  private drop(attempt: Attempt): void {
    attempt.close();
    this.attempts.delete(attempt);
    this.reports = this.reports.filter((other) => other !== attempt);
    this.changed.ring();
  }

  // What became of it is reported.

  private async report(): Promise<void> {
    for (let failures = 0; ; ) {
      const due = await this.nextReports();
      if (due.length === 0) return;
      const batch = together(due);
      const verb = batch[0]!.report!.verb;
      const want = this.roomToWant();
      this.asked += want;
      try {
        const { answers, tasks } = await this.ask(verb, want > 0 ? { ...this.wish(), want } : { worker: this.name }, batch.map((a) => a.report!.item));
        failures = 0;
        this.take(tasks, want);
        batch.forEach((attempt, i) => this.answered(attempt, answers[i]!.error));
      } catch (trouble) {
        const error = asRingiError(trouble);
        this.take([], want);
        if (error.forGood) {
          this.refusedWhole(batch, error);
          continue;
        }
        this.log(`${verb}: ${error}`);
        await sleep(pauseAfter(++failures, error), this.ended.signal);
      }
    }
  }

  /** Waits for reports that are due; none at the end. */
  private async nextReports(): Promise<Attempt[]> {
    while (!this.ended.signal.aborted) {
      const now = performance.now();
      const due = this.reports.filter((attempt) => attempt.due <= now);
      if (due.length > 0) return due;
      await this.changed.next(Math.min(...this.reports.map((attempt) => attempt.due)) - now);
    }
    return [];
  }

  private answered(attempt: Attempt, error: Answer["error"]): void {
    if (!error) return this.drop(attempt);
    if (error.retryable) {
      attempt.due = performance.now() + pauseAfter(++attempt.failures);
      return;
    }
    this.log(`${attempt.report!.verb} of ${attempt.task.run} ${attempt.task.step} was refused: ${error.message}`);
    if (!attempt.refused(error.code, error.message)) this.drop(attempt);
  }

  private refusedWhole(batch: Attempt[], { code, message }: RingiError): void {
    if (batch.length === 1) this.answered(batch[0]!, { code, message, retryable: false });
    for (const attempt of batch) attempt.alone = true;
  }

  // Leases are extended.

  private async beat(): Promise<void> {
    for (;;) {
      const due = await this.nextBeats();
      if (due.length === 0) return;
      let answers: Answer[] | undefined;
      try {
        ({ answers } = await this.ask("heartbeat", { worker: this.name }, due.map((a) => nameOf(a.task)), BEAT_ANSWER_MS));
      } catch (error) {
        this.log(`heartbeat: ${asRingiError(error)}`); // nobody said that a lease is lost
      }
      const now = performance.now();
      due.forEach((attempt, i) => {
        const answer = answers?.[i];
        attempt.beat = now + (answer ? attempt.everyMs : Math.min(attempt.everyMs, BEAT_AGAIN_MS));
        if (answer?.outcome === "stale") {
          attempt.beat = Infinity;
          attempt.cancel("lease_lost");
        } else if (answer?.cancel) {
          attempt.cancel("cancelled");
        }
      });
    }
  }

  /** Waits for heartbeats that are due; none at the end. */
  private async nextBeats(): Promise<Attempt[]> {
    while (!this.ended.signal.aborted) {
      const now = performance.now();
      const held = [...this.attempts];
      const next = Math.min(...held.map((attempt) => attempt.beat)) - now;
      if (next <= 0) {
        return held.filter((a) => a.beat - now <= Math.min(BEATS_TOGETHER_MS, a.everyMs / 2)).slice(0, MOST_AT_ONCE);
      }
      await this.changed.next(next);
    }
    return [];
  }

  /** Makes one request, with an answer for each item. */
  private async ask(
    verb: string, body: object, items: object[], timeoutMs = ANSWER_MS, signal?: AbortSignal,
  ): Promise<{ answers: Answer[]; tasks: Attempt[] }> {
    const answer = await this.client.wire.call({
      method: "POST", path: `/v1/tasks/${verb}`, body: stringify(items.length > 0 ? { ...body, items } : body), timeoutMs,
      ...(signal && { signal }),
    });
    const answers: unknown = answer?.items ?? [];
    const tasks: unknown = answer?.tasks ?? [];
    if (!Array.isArray(answers) || !Array.isArray(tasks) || answers.length !== items.length) {
      throw new RingiError("unavailable", `the answer to ${verb} is not that of a ringi server`, { retryable: true });
    }
    return { answers, tasks: tasks.map((task) => new Attempt(task)) };
  }
}

/** The oldest report and those that fit into one request with it. */
function together(due: Attempt[]): Attempt[] {
  const first = due[0]!;
  if (first.alone) return [first];
  const batch: Attempt[] = [];
  let bytes = 0;
  for (const attempt of due) {
    const report = attempt.report!;
    if (report.verb !== first.report!.verb || attempt.alone) continue;
    bytes += report.bytes + 600; // names, token and punctuation
    if (batch.length === MOST_AT_ONCE || (batch.length > 0 && bytes > BATCH_BYTES)) break;
    batch.push(attempt);
  }
  return batch;
}

/** What went wrong in a request. Whatever else it is, the server has not answered. */
function asRingiError(error: unknown): RingiError {
  return error instanceof RingiError ? error : new RingiError("unavailable", String(error), { retryable: true, cause: error });
}
