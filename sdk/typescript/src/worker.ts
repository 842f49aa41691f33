import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import { Attempt, BATCH_BYTES, textOf } from "./attempt.js";
import { Client } from "./client.js";
import { Cancelled, Failure, RingiError } from "./error.js";
import { stringify } from "./exact.js";
import { type Activity, Lane, type QueueOptions } from "./lane.js";
import { nameOf } from "./task.js";
import { Bell, sleep } from "./time.js";
import { ANSWER_MS, pauseAfter } from "./wire.js";

const LONG_POLL_MS = 20_000; // that a poll waits for its first task
const QUICK_POLL_MS = 100; // an empty poll that comes back sooner is of a server that stops
const BEAT_ANSWER_MS = 5_000; // a heartbeat is given up after that, so that the next comes in time
const BEAT_AGAIN_MS = 1_000; // and is tried again after that
const BEATS_TOGETHER_MS = 250; // how much earlier than due a beat goes along with others
const LAST_WORD_MS = 2_000; // for functions to end that were told to, and for their reports
const MOST_AT_ONCE = 500; // items in one request

export interface WorkerOptions {
  client?: Client;
  /** "default" unless given. */
  queue?: string;
  /** Tells this process from others; drawn unless given. */
  name?: string;
  /** Functions of that queue that run at once; 10 unless given. */
  concurrency?: number;
  /** How long a worker that is stopped waits for what runs; 30,000 unless given. */
  drainMs?: number;
  /** Those of `queue`. */
  activities?: Record<string, Activity>;
  /** More queues by name, each with slots of its own: one that is full holds up none of the others. */
  queues?: Record<string, QueueOptions>;
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
 * Takes tasks of its queues, calls functions, and reports what became of them. One
 * loop for each queue polls, one reports and one extends leases, so that no two
 * requests of a kind are under way.
 */
export class Worker {
  readonly name: string;
  readonly queue: string;

  private readonly client: Client;
  private readonly lanes: Lane[] = [];
  private readonly drainMs: number;
  private readonly log: (message: string) => void;

  private readonly changed = new Bell();
  private readonly stopping = new AbortController(); // takes no more tasks
  private readonly ended = new AbortController(); // says nothing more

  constructor(options: WorkerOptions) {
    this.name = options.name ?? `node-${hostname().slice(0, 100)}-${process.pid}-${randomUUID().slice(0, 8)}`;
    this.queue = options.queue ?? "default";
    this.client = options.client ?? new Client();
    this.drainMs = options.drainMs ?? 30_000;
    this.log = options.log ?? ((message) => console.warn(`ringi: ${message}`));
    const { activities, concurrency, queues = {} } = options;
    if (activities || Object.keys(queues).length === 0) {
      this.lanes.push(new Lane(this.queue, { activities: activities ?? {}, ...(concurrency !== undefined && { concurrency }) }));
    }
    for (const [queue, of] of Object.entries(queues)) {
      if (this.lanes.some((lane) => lane.queue === queue)) throw new TypeError(`the queue ${queue} is there twice: put its activities together`);
      this.lanes.push(new Lane(queue, of));
    }
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
    const loops = Promise.all([...this.lanes.map((lane) => this.poll(lane)), this.report(), this.beat()]);
    try {
      await Promise.race([loops, this.stopped()]);
      return await this.finish();
    } finally {
      stop();
      this.ended.abort();
      this.changed.ring();
      for (const attempt of this.attempts()) attempt.close();
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
    const idle = () => this.lanes.every((lane) => lane.attempts.size === 0);
    if (await this.changed.until(idle, this.drainMs)) return true;
    for (const attempt of this.attempts()) attempt.cancel("stopping");
    if (await this.changed.until(idle, LAST_WORD_MS)) return true;
    this.log(`stopped with ${this.attempts().length} attempts that were not reported`);
    return false;
  }

  private attempts(): Attempt[] {
    return this.lanes.flatMap((lane) => [...lane.attempts]);
  }

  // Tasks come in.

  private async poll(lane: Lane): Promise<void> {
    const stopping = this.stopping.signal;
    for (let failures = 0; ; ) {
      await this.changed.until(() => stopping.aborted || lane.roomToPoll() > 0);
      if (stopping.aborted) return;
      const max = lane.roomToPoll();
      lane.asked += max;
      const began = performance.now();
      let tasks: Attempt[] = [];
      let error: RingiError | undefined;
      try {
        ({ tasks } = await this.ask(lane, "poll", { ...lane.wish(this.name), max, waitMs: LONG_POLL_MS }, [], ANSWER_MS + LONG_POLL_MS, stopping));
      } catch (trouble) {
        error = asRingiError(trouble);
      }
      this.take(lane, tasks, max);
      if (!error && (tasks.length > 0 || performance.now() - began >= QUICK_POLL_MS)) {
        failures = 0;
        continue;
      }
      if (error && !stopping.aborted) this.log(`poll of queue ${lane.queue}: ${error}`);
      await sleep(pauseAfter(++failures, error), stopping);
    }
  }

  /** Give asked slots back and call a function for each task that came. */
  private take(lane: Lane, tasks: Attempt[], asked: number): void {
    lane.asked -= asked;
    for (const attempt of tasks) {
      lane.attempts.add(attempt);
      void this.perform(attempt);
    }
    this.changed.ring();
  }

  // A task is done.

  private async perform(attempt: Attempt): Promise<void> {
    const { task } = attempt;
    if (task.begin && !(await this.permitted(attempt))) return this.drop(attempt);
    try {
      const activity = attempt.lane.activities.get(task.activity);
      if (!activity) throw new Failure("no_handler", `this worker has no activity ${task.activity}`, { retryable: true, applied: "no" });
      attempt.completed(await activity(task));
    } catch (error) {
      if (!(error instanceof Failure || error instanceof Cancelled)) {
        this.log(`${task.activity} of run ${task.run}: ${(error instanceof Error && error.stack) || textOf(error)}`);
      }
      attempt.threw(error);
    }
    attempt.finished = performance.now();
    attempt.lane.reports.push(attempt);
    this.changed.ring();
  }

  /** Ask for permission to make a call that must not repeat, until there is an answer: that to a repeated question is the same. */
  private async permitted(attempt: Attempt): Promise<boolean> {
    const { task } = attempt;
    for (let failures = 1; ; failures++) {
      try {
        const { answers } = await this.ask(attempt.lane, "begin", { worker: this.name }, [nameOf(task)]);
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
    attempt.lane.drop(attempt);
    this.changed.ring();
  }

  // What became of it is reported.

  private async report(): Promise<void> {
    for (let failures = 0; ; ) {
      const due = await this.nextReports();
      if (due.length === 0) return;
      const batch = together(due);
      const verb = batch[0]!.report!.verb;
      const { lane } = batch[0]!;
      const want = this.stopping.signal.aborted ? 0 : lane.roomToWant();
      lane.asked += want;
      try {
        const { answers, tasks } = await this.ask(lane, verb, want > 0 ? { ...lane.wish(this.name), want } : { worker: this.name }, batch.map((a) => a.report!.item));
        failures = 0;
        this.take(lane, tasks, want);
        batch.forEach((attempt, i) => this.answered(attempt, answers[i]!.error));
      } catch (trouble) {
        const error = asRingiError(trouble);
        this.take(lane, [], want);
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
      const reports = this.lanes.flatMap((lane) => lane.reports);
      const due = reports.filter((attempt) => attempt.due <= now).sort((a, b) => a.finished - b.finished);
      if (due.length > 0) return due;
      await this.changed.next(Math.min(...reports.map((attempt) => attempt.due)) - now);
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
        ({ answers } = await this.ask(this.lanes[0]!, "heartbeat", { worker: this.name }, due.map((a) => nameOf(a.task)), BEAT_ANSWER_MS));
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
      const held = this.attempts();
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
    lane: Lane, verb: string, body: object, items: object[], timeoutMs = ANSWER_MS, signal?: AbortSignal,
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
    return { answers, tasks: tasks.map((task) => new Attempt(task, lane)) };
  }
}

/** The oldest report and those of its queue that fit into one request with it. */
function together(due: Attempt[]): Attempt[] {
  const first = due[0]!;
  if (first.alone) return [first];
  const batch: Attempt[] = [];
  let bytes = 0;
  for (const attempt of due) {
    const report = attempt.report!;
    if (report.verb !== first.report!.verb || attempt.lane !== first.lane || attempt.alone) continue;
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
