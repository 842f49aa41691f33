/** One attempt at an activity. Durations are milliseconds. */
export interface Task<In = any> {
  readonly activity: string;
  /** Its input, as exact JSON: see parse. */
  readonly input: In;
  /** The idempotency key, the same in every attempt: hand it to the outside service. */
  readonly key: string;
  readonly run: string;
  readonly step: string;
  /** Absent for the step itself; probe asks what became of it. */
  readonly direction?: "undo" | "probe";
  readonly attempt: number;
  readonly token: number | bigint;
  readonly effect: "pure" | "idempotent" | "probeable" | "at_most_once";
  readonly definition: string;
  readonly version: number;
  readonly queue: string;
  /** The worker asks for permission before it calls the function. */
  readonly begin: boolean;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly timeoutMs: number;
  /** Aborted when the function should end; its reason is then a Cancelled. */
  readonly signal: AbortSignal;
}

/** Which attempt a task is, as the server wants it with everything that is said about it. */
export function nameOf({ run, step, direction, attempt, token }: Task): object {
  return { run, step, direction, attempt, token };
}
