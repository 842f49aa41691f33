import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

import { RingiError } from "./error.js";
import { stringify } from "./exact.js";
import { sleep } from "./time.js";
import { pauseAfter, type Request, Wire } from "./wire.js";

const DEFAULT_SERVER = "http://127.0.0.1:7070";
const FIRST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 1_000;

/** A definition version. `created` is false if it was there already. */
export interface Published {
  name: string;
  version: number;
  digest: string;
  created: boolean;
}

/** A run. `created` is false if the start key had its run already. */
export interface Started {
  run: string;
  created: boolean;
  version: number;
  status: string;
}

/** A stored event. */
export interface Sent {
  id: string;
  outcome: "accepted" | "repeated";
}

/** What became of a command. */
export interface Done {
  run: string;
  seq: number;
  version: number;
  status: string;
  outcome: "accepted" | "repeated" | "stale";
}

/** Why something failed. */
export interface Cause {
  code: string;
  message?: string;
  step?: string;
}

/** A step of a run. `outcome` is "open" until it has ended. */
export interface Step {
  id: string;
  outcome: string;
  attempts: number;
  undo?: string;
  output?: any;
  error?: Cause;
}

/** A run as the server shows it. */
export interface Run {
  run: string;
  definition: string;
  version: number;
  key?: string;
  title?: string;
  status: string;
  waitingFor?: string;
  requester: string;
  labels?: Record<string, string>;
  startedAt: string;
  endedAt?: string;
  seq: number;
  steps: Step[];
  output?: any;
  cause?: Cause;
  effectsLeft: string[];
  incidents?: any[];
  waits?: any[];
}

export interface ClientOptions {
  /** RINGI_SERVER or http://127.0.0.1:7070 unless given; of several on one database, separated by commas, the next is asked while one is away. */
  server?: string;
  /** The content of the file that RINGI_KEY_FILE names unless given. */
  key?: string;
  /** For how long a request is repeated, in milliseconds; 30,000 unless given. */
  patienceMs?: number;
}

export interface StartOptions {
  /** One key, one run: repeats with the same input get the run that exists. */
  key?: string;
  version?: number;
  onBehalfOf?: string;
  eventId?: string;
}

export interface EventOptions {
  /** Which waits of that name. */
  key?: string;
  /** A repeated id is dropped; drawn unless given. */
  id?: string;
  /** How long a wait may still open and find it; a day unless given. */
  keepMs?: number;
}

export interface WatchOptions {
  /** Throws after so long. */
  timeoutMs?: number;
}

/** Whether a run keeps this status for ever. */
export function isFinal(status: string): boolean {
  return ["completed", "failed", "compensated", "cancelled", "terminated"].includes(status);
}

/**
 * A server that is reached over HTTP. A request that got no answer, or that may
 * succeed later, is sent again for `patienceMs`: every method may be repeated
 * without harm, except `start` without a key, which is sent again only if the
 * server cannot have seen it.
 */
export class Client {
  /** For workers: one request, not repeated. */
  readonly wire: Wire;
  private readonly patienceMs: number;

  constructor(options: ClientOptions = {}) {
    const keyFile = process.env["RINGI_KEY_FILE"];
    const key = options.key ?? (keyFile ? readFileSync(keyFile, "utf8").trim() : "");
    this.wire = new Wire(options.server ?? (process.env["RINGI_SERVER"] || DEFAULT_SERVER), key);
    this.patienceMs = options.patienceMs ?? 30_000;
  }

  /** Store a definition, or find the version that is the same. What is wrong with one stands in RingiError.problems. */
  publish(source: string, file?: string): Promise<Published> {
    const query = file === undefined ? "" : `?file=${encodeURIComponent(file)}`;
    return this.repeat({ method: "POST", path: "/v1/definitions" + query, body: source, kind: "application/yaml" });
  }

  /** Start a run. */
  start(definition: string, input: unknown = null, options: StartOptions = {}): Promise<Started> {
    return this.repeat({ method: "POST", path: "/v1/runs", body: stringify({ definition, input, ...options }) }, !options.key);
  }

  /** Read a run. */
  show(run: string): Promise<Run> {
    return this.repeat({ method: "GET", path: of(run) });
  }

  /**
   * Yield a run whenever it has changed, until it has ended. A run with an
   * incident has not ended: it waits for a person.
   */
  async *watch(run: string, options: WatchOptions = {}): AsyncGenerator<Run, void, void> {
    const end = performance.now() + (options.timeoutMs ?? Infinity);
    for (let seen = -1, look = FIRST_LOOK_MS; ; look = Math.min(look * 1.5, LONGEST_LOOK_MS)) {
      const view = await this.show(run);
      if (view.seq !== seen) {
        seen = view.seq;
        look = FIRST_LOOK_MS;
        yield view;
      }
      if (isFinal(view.status)) return;
      const left = end - performance.now();
      if (left <= 0) {
        throw new Error(`run ${run} has not ended after ${options.timeoutMs} ms: it is ${view.status} ${view.waitingFor ?? ""}`.trimEnd());
      }
      await sleep(Math.min(look, left));
    }
  }

  /** Wait until a run has ended, in whatever way, and return it. */
  async wait(run: string, options: WatchOptions = {}): Promise<Run> {
    let last: Run | undefined;
    for await (last of this.watch(run, options));
    return last!; // watch yields at least once
  }

  /** Send an event to the runs that wait for its name and key, now or later. */
  sendEvent(name: string, data: unknown = null, options: EventOptions = {}): Promise<Sent> {
    return this.repeat({ method: "POST", path: "/v1/events", body: stringify({ id: randomUUID(), name, data, ...options }) });
  }

  /** End a run after undoing what it did. The reason is kept. */
  cancel(run: string, reason: string): Promise<Done> {
    return this.repeat({ method: "POST", path: `${of(run)}/cancel`, body: stringify({ reason }) });
  }

  /** Send a request until it is answered or refused for good. With once, an answer that got lost is an error, since nobody knows what it said. */
  private async repeat(request: Request, once = false): Promise<any> {
    const end = performance.now() + this.patienceMs;
    for (let failures = 1; ; failures++) {
      try {
        return await this.wire.call(request);
      } catch (error) {
        if (!(error instanceof RingiError)) throw error;
        const pause = pauseAfter(failures, error);
        const lost = once && error.sent && error.status !== 429;
        if (lost || !error.retryable || performance.now() + pause > end) throw error;
        await sleep(pause);
      }
    }
  }
}

function of(run: string): string {
  return `/v1/runs/${encodeURIComponent(run)}`;
}
