// The activities of the conformance scenarios in TypeScript's library; see
// ../doc.go. With the argument "client" it shows instead what the client does, as
// lines of JSON.

import { setTimeout as sleep } from "node:timers/promises";

import { Client, Failure, RingiError, Worker, stringify } from "../../typescript/dist/index.js";

const { env } = process;

function ledger(path, body) {
  return fetch(env.LEDGER + path, body && { method: "POST", body: JSON.stringify(body) });
}

const activities = {
  echo: ({ input }) => input,

  fail: ({ input: { code, message, until = 1000, ...how }, attempt }) => {
    if (attempt >= until) return { attempt };
    throw new Failure(code, message, how);
  },

  crash: () => {
    throw new Error("nobody thought of it");
  },

  grow: ({ input }) => ({ text: "x".repeat(input.bytes) }),

  hold: async ({ input: { gate }, key, attempt, signal }) => {
    await ledger("/began", { gate, key, attempt, by: "typescript" });
    while ((await ledger(`/gate/${gate}`)).status !== 200) {
      if (signal.aborted) {
        await ledger("/ended", { gate, key, reason: signal.reason.reason });
        throw signal.reason;
      }
      await sleep(20);
    }
    return { key };
  },

  find: async ({ input: { key } }) => {
    const { count } = await (await ledger(`/effect/${encodeURIComponent(key)}`)).json();
    return count > 0 ? { applied: "yes", output: { key } } : { applied: "no" };
  },
};

async function client() {
  const c = new Client();
  const show = (what) => console.log(stringify(what));

  let source = "";
  for await (const piece of process.stdin.setEncoding("utf8")) source += piece;
  const { name, created } = await c.publish(source);
  show({ created, again: (await c.publish(source)).created });
  const one = await c.start(name, { n: 9007199254740993n, key: "o-1" }, { key: "k-1" });
  const two = await c.start(name, { n: 9007199254740993n, key: "o-1" }, { key: "k-1" });
  show({ created: one.created, again: two.created, same: one.run === two.run });
  for (const call of [
    () => c.start(name, { n: 2 }, { key: "k-1" }), () => c.show("01a22ccb-9bd7-76c4-83b7-b3a944c13ad1"), () => c.publish("ringi: v1\n"),
  ]) {
    const error = await call().catch((e) => e);
    if (!(error instanceof RingiError)) throw error;
    show({ code: error.code, hint: error.hint !== "", retryable: error.retryable, problems: error.problems.length > 0 });
  }
  const sent = await c.sendEvent("paid", { amount: 1 }, { key: "o-1", id: "e-1" });
  const again = await c.sendEvent("paid", { amount: 1 }, { key: "o-1", id: "e-1" });
  show({ id: sent.id, outcome: sent.outcome, again: again.outcome });
  const { status, output } = await c.wait(one.run, { timeoutMs: 30_000 });
  show({ status, output });
  const other = (await c.start(name, { n: 3, key: "o-2" })).run;
  let last;
  for await (last of c.watch(other, { timeoutMs: 30_000 })) {
    if (last.status === "waiting") await c.cancel(other, "ordered twice");
  }
  show({ status: last.status });
}

if (process.argv[2] === "client") {
  await client();
} else {
  const queues = { [`${env.RINGI_QUEUE}-aside`]: { concurrency: 1, activities: { echo: activities.echo } } };
  const worker = new Worker({ queue: env.RINGI_QUEUE, concurrency: Number(env.CONCURRENCY ?? 10), activities, queues });
  process.exitCode = (await worker.run()) ? 0 : 1;
}
