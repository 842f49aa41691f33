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

/** A server that is reached over HTTP: one request, and its answer or a RingiError. */
export class Wire {
  private readonly base: string;
  private readonly headers: Record<string, string>;

  constructor(
    readonly server: string,
    key: string,
  ) {
    let url: URL | undefined;
    try {
      url = new URL(server);
    } catch {} // refused below
    if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash) {
      throw new TypeError(`the server ${JSON.stringify(server)} is not an address: give http:// or https:// and a host`);
    }
    this.base = server.replace(/\/+$/, "");
    this.headers = { Accept: "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  }

  /** Send a request and decode its answer. */
  async call(request: Request): Promise<any> {
    const end = new AbortController();
    const abort = () => end.abort();
    request.signal?.addEventListener("abort", abort);
    if (request.signal?.aborted) abort();
    void sleep(request.timeoutMs ?? ANSWER_MS, end.signal).then(abort);
    try {
      const answer = await fetch(this.base + request.path, {
        method: request.method,
        headers: request.body === undefined ? this.headers : { ...this.headers, "Content-Type": request.kind ?? "application/json" },
        body: request.body ?? null,
        redirect: "manual", // the key must not follow to somewhere else
        signal: end.signal,
      });
      const text = await answer.text();
      if (!answer.ok) throw refusal(answer, text);
      return this.decode(answer, text);
    } catch (error) {
      throw error instanceof RingiError ? error : this.unreachable(error);
    } finally {
      request.signal?.removeEventListener("abort", abort);
      abort();
    }
  }

  private decode(answer: Response, text: string): unknown {
    try {
      return parse(text);
    } catch (cause) {
      throw new RingiError("unavailable", `the answer of ${this.server} is not JSON`, {
        hint: "check the address", retryable: true, status: answer.status, cause,
      });
    }
  }

  private unreachable(error: unknown): RingiError {
    const cause = error instanceof Error ? (error.cause as { code?: string; message?: string } | undefined) : undefined;
    const never = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];
    return new RingiError("unavailable", `no answer from ${this.server}: ${cause?.code ?? cause?.message ?? String(error)}`, {
      hint: "is it running?", retryable: true, sent: !never.includes(cause?.code ?? ""), cause: error,
    });
  }
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
