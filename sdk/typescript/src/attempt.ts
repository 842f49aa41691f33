import { Cancelled, type CancelReason, Failure } from "./error.js";
import { Encoded, stringify } from "./exact.js";
import type { Lane } from "./lane.js";
import { nameOf, type Task } from "./task.js";
import { after } from "./time.js";

/** The first heartbeat of a task that still runs: the server wants it within two seconds. */
const FIRST_BEAT_MS = 1_500;
/** Leaves room for two that get lost. */
const BEATS_PER_LEASE = 3;
/** How much of outputs goes into one request: a body holds 1 MiB. */
export const BATCH_BYTES = 768 * 1024;
/** Limits of what is said about a failure, in bytes. */
const MAX_CODE = 256;
const MAX_MESSAGE = 4_000;
/** The longest pause that counts: the server takes no longer one. */
const MAX_PAUSE_MS = 86_400_000;

/** A report: what became of an attempt, and when it goes. */
export interface Report {
  verb: "complete" | "fail";
  item: object;
  /** Of its payload, in bytes. */
  bytes: number;
}

/** One attempt that a worker holds, from its arrival until its report was taken. */
export class Attempt {
  readonly task: Task;
  /** Between two heartbeats. */
  readonly everyMs: number;
  /** When the next heartbeat is due. */
  beat: number;
  /** Once there is something to say. */
  report: Report | undefined;
  /** When the function ended. */
  finished = Infinity;
  /** Not reported before. */
  due = 0;
  /** How often the report was put off. */
  failures = 0;
  /** Something in its company was refused: it goes by itself. */
  alone = false;

  private readonly end = new AbortController();
  private readonly callOff: () => void;

  constructor(sent: Omit<Task, "signal">, readonly lane: Lane) {
    const now = performance.now();
    this.task = { ...sent, signal: this.end.signal };
    this.everyMs = (sent.heartbeatMs || 30_000) / BEATS_PER_LEASE;
    this.beat = sent.begin ? Infinity : now + Math.min(FIRST_BEAT_MS, (sent.leaseMs || Infinity) / BEATS_PER_LEASE);
    this.callOff = after(sent.timeoutMs || Infinity, () => this.cancel("timed_out"));
  }

  /** The permission came, and with it a lease. */
  begun(): void {
    this.beat = performance.now() + this.everyMs;
  }

  /** Tells the function that it should end. The first reason stays. */
  cancel(reason: CancelReason): void {
    this.end.abort(new Cancelled(reason));
  }

  /** The worker is done with it. */
  close(): void {
    this.callOff();
  }

  /** The function returned. */
  completed(output: unknown): void {
    this.callOff();
    let text: string;
    try {
      text = stringify(output);
    } catch (error) {
      return this.failed(new Failure("bad_output_value", `the output is not JSON: ${textOf(error)}`, { applied: "unknown" }));
    }
    const bytes = new TextEncoder().encode(text).length;
    if (bytes > BATCH_BYTES) {
      return this.failed(new Failure("output_too_large", `the output has ${bytes} bytes, more than a request holds`, { applied: "unknown" }));
    }
    this.report = { verb: "complete", item: { ...nameOf(this.task), output: new Encoded(text) }, bytes };
  }

  /** The function threw something. */
  threw(error: unknown): void {
    this.callOff();
    if (error instanceof Failure) return this.failed(error);
    const reason = this.task.signal.aborted ? (this.task.signal.reason as Cancelled).reason : undefined;
    const text = textOf(error);
    if (reason === undefined) this.failed(new Failure("error", text, { retryable: true }));
    else if (reason === "timed_out") this.failed(new Failure("timed_out", text, { retryable: true }));
    else this.failed(new Failure("interrupted", `${reason}: ${text}`, { retryable: true }));
  }

  /**
   * The server will never take the report. Says whether there is another one to
   * make: the call was made, and only what it answered cannot be taken.
   */
  refused(code: string, message: string): boolean {
    if (this.report?.verb !== "complete" || (code !== "invalid" && code !== "too_large")) return false;
    this.failed(new Failure(code === "too_large" ? "output_too_large" : "bad_output_value", message, { applied: "unknown" }));
    return true;
  }

  /** What a function put into the failure may be of any type: JavaScript asks nobody, and it is reported all the same. */
  private failed({ code, message, retryable, applied, retryAfterMs }: Failure): void {
    const pause = Math.round(Math.min(Number(retryAfterMs), MAX_PAUSE_MS));
    const item = {
      ...nameOf(this.task), code: sendable(code, MAX_CODE) || "error", message: sendable(message, MAX_MESSAGE), retryable: Boolean(retryable),
      ...(applied && { applied: applied === "no" ? "no" : "unknown" }),
      ...(pause > 0 && { retryAfterMs: pause }),
    };
    this.report = { verb: "fail", item, bytes: MAX_MESSAGE };
  }
}

/** What a value says of itself. Never throws: it may be anything that can be thrown. */
export function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return "(it cannot be shown)";
  }
}

/** Text as the server takes it: well-formed, without NUL, and not too long. */
function sendable(value: unknown, most: number): string {
  const bytes = new TextEncoder().encode(textOf(value ?? "").replaceAll("\0", ""));
  return new TextDecoder().decode(bytes.subarray(0, most), { stream: true }); // a character that was cut in two stays out
}
