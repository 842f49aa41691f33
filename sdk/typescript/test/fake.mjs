// A server that answers as a test says, and remembers what it was asked.

import { once } from "node:events";
import http from "node:http";

import { Client, parse, stringify } from "../dist/index.js";

/** answer(path, body) returns [status, body], or nothing to close the connection without an answer. */
export async function serve(t, answer) {
  const asked = [];
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    const body = text && parse(text);
    asked.push([request.url, body]);
    const said = await answer(request.url, body);
    if (!said) return request.socket.destroy();
    response.statusCode = said[0];
    response.end(stringify(said[1]));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = `http://127.0.0.1:${server.address().port}`;
  return {
    asked,
    address,
    client: (patienceMs = 5_000) => new Client({ server: address, key: "key", patienceMs }),
    bodies: (path) => asked.filter(([to]) => to === path).map(([, body]) => body),
  };
}

/** Answers each request with the next of a list. */
export function inOrder(...answers) {
  return () => answers.shift();
}

export function task(n, more = {}) {
  return {
    tenant: 1, run: `r${n}`, step: "s", attempt: 1, token: 65536 * n + 1, activity: "a", queue: "default",
    definition: "d", version: 1, input: n, key: `k${n}`, effect: "pure", begin: false,
    leaseMs: 5000, heartbeatMs: 30000, timeoutMs: 30000, ...more,
  };
}

export function accepted(body) {
  return [200, { items: body.items.map(() => ({ outcome: "accepted" })) }];
}
