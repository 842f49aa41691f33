/** The longest that a timer of JavaScript can wait. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls a function after a while, however long; returns what calls it off. */
export function after(ms: number, call: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const wait = (left: number) => {
    timer = setTimeout(() => (left > LONGEST_MS ? wait(left - LONGEST_MS) : call()), Math.min(Math.max(left, 0), LONGEST_MS));
  };
  if (ms !== Infinity) wait(ms);
  return () => clearTimeout(timer);
}

/** Waits, but no longer than until the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      callOff();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const callOff = after(ms, done);
    signal?.addEventListener("abort", done);
  });
}

/** Wakes everything that waits for a change. */
export class Bell {
  private change = new AbortController();

  ring(): void {
    const before = this.change;
    this.change = new AbortController();
    before.abort();
  }

  /** Waits for the next ring, but no longer than ms. */
  next(ms = Infinity): Promise<void> {
    return sleep(ms, this.change.signal);
  }

  /** Waits until something holds, but no longer than ms, and returns whether it does. */
  async until(holds: () => boolean, ms = Infinity): Promise<boolean> {
    const end = performance.now() + ms;
    while (!holds() && performance.now() < end) await this.next(end - performance.now());
    return holds();
  }
}
