import { RingiError } from "./error.js";
import { parse } from "./exact.js";
import { sleep } from "./time.js";

/** How long an answer may take, on top of what a poll waits: longer than any commit takes. */
export const ANSWER_MS = 30_000;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** The pause after so many failures in a row, from 1. */
export function pauseAfter(failures: number, error?: RingiError): number {
  return Math.max(Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10), LONGEST_PAUSE_MS), error?.retryAfterMs ?? 0);
}

/** One request. */
export interface Request {
  method: "GET" | "POST";
  path: string;
  body?: string;
  kind?: string;
  timeoutMs?: number;
  /** Ends the request without an answer. */
  signal?: AbortSignal;
}

/** How long another server than the first is asked once the first did not answer. */
const HOME_AFTER_MS = 3_000;

/** The servers of one database, of which any will do. The first is the one to ask; while it does not answer another is. */
class Places {
  private readonly all: string[];
  private at = 0;
  /** When the first was left. */
  private left = 0;

  constructor(servers: string) {
    this.all = servers.split(",").map((server) => address(server.trim()));
  }

  /** The server to ask now. */
  here(): string {
    if (this.at > 0 && performance.now() - this.left >= HOME_AFTER_MS) this.at = 0;
    return this.all[this.at]!; // at stays below the length
  }

  /** It did not answer, or can answer nothing durably. Of several requests that met the same failure the first moves on. */
  failed(server: string): void {
    if (this.all[this.at] !== server) return;
    if (this.at === 0) this.left = performance.now();
    this.at = (this.at + 1) % this.all.length;
  }
}

function address(server: string): string {
  let url: URL | undefined;
  try {
    url = new URL(server);
  } catch {} // refused below
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash) {
    throw new TypeError(`the server ${JSON.stringify(server)} is not an address: give http:// or https:// and a host; several are separated by commas`);
  }
  return server.replace(/\/+$/, "");
}

/** A server that is reached over HTTP, or several of one database: one request, and its answer or a RingiError. */
export class Wire {
  private readonly places: Places;
  private readonly headers: Record<string, string>;

  constructor(servers: string, key: string) {
    this.places = new Places(servers);
    this.headers = { Accept: "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  }

  /** Send a request and decode its answer. */
  async call(request: Request): Promise<any> {
    const server = this.places.here();
    const end = new AbortController();
    const abort = () => end.abort();
    request.signal?.addEventListener("abort", abort);
    if (request.signal?.aborted) abort();
    void sleep(request.timeoutMs ?? ANSWER_MS, end.signal).then(abort);
    try {
      const answer = await fetch(server + request.path, {
        method: request.method,
        headers: request.body === undefined ? this.headers : { ...this.headers, "Content-Type": request.kind ?? "application/json" },
        body: request.body ?? null,
        redirect: "manual", // the key must not follow to somewhere else
        signal: end.signal,
      });
      const text = await answer.text();
      if (answer.status === 503) this.places.failed(server);
      if (!answer.ok) throw refusal(answer, text);
      return decode(server, answer, text);
    } catch (error) {
      if (error instanceof RingiError) throw error;
      if (!request.signal?.aborted) this.places.failed(server);
      throw unreachable(server, error);
    } finally {
      request.signal?.removeEventListener("abort", abort);
      abort();
    }
  }
}

function decode(server: string, answer: Response, text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    throw new RingiError("unavailable", `the answer of ${server} is not JSON`, {
      hint: "check the address", retryable: true, status: answer.status, cause,
    });
  }
}

function unreachable(server: string, error: unknown): RingiError {
  const cause = error instanceof Error ? (error.cause as { code?: string; message?: string } | undefined) : undefined;
  const never = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];
  return new RingiError("unavailable", `no answer from ${server}: ${cause?.code ?? cause?.message ?? String(error)}`, {
    hint: "is it running?", retryable: true, sent: !never.includes(cause?.code ?? ""), cause: error,
  });
}

/** Codes of answers that something in between gave. Of the rest nobody knows what the server would have said. */
const CODES: Record<number, string> = { 401: "unauthenticated", 403: "forbidden", 413: "too_large", 429: "limit" };

/** The error of an answer that is not a success: a problem of RFC 9457, or what something in between said. */
function refusal(answer: Response, text: string): RingiError {
  const status = answer.status;
  const wait = Number(answer.headers.get("Retry-After") ?? "");
  const retryAfterMs = Number.isFinite(wait) ? wait * 1000 : 0;
  try {
    const problem = parse(text);
    if (typeof problem.code === "string" && typeof problem.detail === "string") {
      return new RingiError(problem.code, problem.detail, {
        hint: problem.hint ?? "", retryable: problem.retryable === true, status, retryAfterMs, problems: problem.problems ?? [],
      });
    }
  } catch {} // not a problem of ours: see below
  return new RingiError(CODES[status] ?? "unavailable", `${status} ${answer.statusText}, which is not an answer of a ringi server`, {
    hint: "check the address, and what stands in between", retryable: status >= 500 || status === 408 || status === 429, status, retryAfterMs,
  });
}
