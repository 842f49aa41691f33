/** What more there is to say about a RingiError. */
export interface ErrorDetails {
  hint?: string;
  retryable?: boolean;
  status?: number;
  retryAfterMs?: number;
  problems?: unknown[];
  sent?: boolean;
  cause?: unknown;
}

/**
 * A request that the server refused, or that got no answer. Ask what it means,
 * not what it is: `code` is one of a closed set (invalid, unauthenticated,
 * forbidden, not_found, start_key_conflict, final, too_large, limit, unavailable,
 * internal and a few more), `retryable` says whether the same request may succeed
 * later, and `hint` what to do next.
 */
export class RingiError extends Error {
  override readonly name = "RingiError";
  readonly code: string;
  readonly hint: string;
  readonly retryable: boolean;
  /** Of HTTP; 0 when no answer came. */
  readonly status: number;
  /** How long the server asked to wait. */
  readonly retryAfterMs: number;
  /** Of a definition that was not accepted. */
  readonly problems: unknown[];
  /** False: the server cannot have seen the request. */
  readonly sent: boolean;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.hint = details.hint ?? "";
    this.retryable = details.retryable ?? false;
    this.status = details.status ?? 0;
    this.retryAfterMs = details.retryAfterMs ?? 0;
    this.problems = details.problems ?? [];
    this.sent = details.sent ?? true;
  }

  /**
   * Whether the server has read the request and will never take it as it is. What
   * refuses the address or the key may yet be mended.
   */
  get forGood(): boolean {
    return (this.status === 400 || this.status === 413) && (this.code === "invalid" || this.code === "too_large");
  }

  override toString(): string {
    return `${this.code}: ${this.message}${this.hint && ` (${this.hint})`}`;
  }
}

/** How a call failed; see Failure. */
export interface FailureOptions {
  /** Whether another attempt may succeed; false unless given. */
  retryable?: boolean;
  /** "no" only when the call certainly had no effect; absent: by the effect contract of the step. */
  applied?: "no" | "unknown";
  /** How long the service asked to be left alone: the next attempt is not made before. */
  retryAfterMs?: number;
  /** The same as the service said it: its header Retry-After, in seconds or as a date, or the time at which the pause ends. */
  retryAfter?: string | Date | null;
}

/**
 * How an attempt failed, for activities to throw. `code` is what retry.stop_on
 * and catch.on of a definition name. Any other error counts as retryable and
 * perhaps applied, with the code "error".
 */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: string;
  readonly retryable: boolean;
  readonly applied: "no" | "unknown" | undefined;
  readonly retryAfterMs: number;

  constructor(code: string, message = "", options: FailureOptions = {}) {
    super(message);
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.applied = options.applied;
    this.retryAfterMs = Math.round(milliseconds(options.retryAfterMs) || until(options.retryAfter));
  }
}

/** A number of whatever was given; 0 if it is none. JavaScript asks nobody for types. */
function milliseconds(value: unknown): number {
  try {
    return Number(value ?? 0) || 0;
  } catch {
    return 0;
  }
}

/** How long a Retry-After asks to wait: seconds or a date, as text, or the date itself. */
function until(when: string | Date | null | undefined): number {
  if (typeof when === "string" && /^ *\d+(\.\d+)? *$/.test(when)) return Number(when) * 1000;
  const at = when instanceof Date ? when.getTime() : typeof when === "string" && / GMT *$/.test(when) ? Date.parse(when) : NaN;
  return Number.isNaN(at) ? 0 : Math.max(0, at - Date.now());
}

/**
 * Why a function should end: its time is up, the attempt is no longer ours, the
 * run is being undone or has ended, or the worker stops.
 */
export type CancelReason = "timed_out" | "lease_lost" | "cancelled" | "stopping";

/** The reason of a task's signal once it is aborted. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
  readonly reason: CancelReason;

  constructor(reason: CancelReason) {
    super(reason);
    this.reason = reason;
  }
}
