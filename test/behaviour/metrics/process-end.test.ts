// Collectors keep no process alive, whatever they have open or in flight.
import { describe, expect, it } from "vitest";
import { OwnProcess } from "../../support/own-process.ts";

const PRELUDE = `
import { CacheMetrics, PullCollector, PushCollector } from "./index.js";
`;

async function run(program: string) {
  await using own = new OwnProcess(PRELUDE + program);
  const { code } = await own.ended();
  return { code, words: own.words, errors: own.errors };
}

describe("a process exits by itself", () => {
  it("with a listening endpoint, a connected client and pending datagrams", async () => {
    const outcome = await run(`
      import { connect } from "node:net";
      const pull = new PullCollector({ port: 0 });
      const push = new PushCollector({ port: 9 });
      const hanging = { increment: () => new Promise(() => {}), gauge() {}, histogram() {}, timing() {} };
      new CacheMetrics([pull, push, hanging]).increment("orders");
      const { port } = await pull.listening();
      const client = connect(port, "127.0.0.1");
      await new Promise((resolve) => client.once("connect", resolve));
      client.unref();
      await fetch(\`http://127.0.0.1:\${port}/metrics\`).then((response) => response.text());
      say("done");
    `);
    expect(outcome).toEqual({ code: 0, words: ["done"], errors: "" });
  });

  it("after flush() has sent datagrams through a socket that was open already", async () => {
    const outcome = await run(`
      import { createSocket } from "node:dgram";
      const daemon = createSocket("udp4");
      await new Promise((resolve) => daemon.bind(0, "127.0.0.1", resolve));
      daemon.unref();
      const metrics = new CacheMetrics([new PushCollector({ port: daemon.address().port })]);
      for (let at = 0; at < 2; at++) {
        metrics.increment("orders");
        await metrics.flush();
      }
      say(String(process.getActiveResourcesInfo().includes("UDPWrap")));
    `);
    expect(outcome).toEqual({ code: 0, words: ["false"], errors: "" });
  });

  it("after close() has sent the last datagrams, which it waits for", async () => {
    const outcome = await run(`
      import { createSocket } from "node:dgram";
      const daemon = createSocket("udp4");
      const came = new Promise((resolve) => daemon.once("message", resolve));
      await new Promise((resolve) => daemon.bind(0, "127.0.0.1", resolve));
      const metrics = new CacheMetrics([new PushCollector({ port: daemon.address().port })]);
      daemon.unref();
      metrics.increment("orders");
      await metrics.close();
      daemon.ref();
      say(String(await came));
      daemon.close();
    `);
    expect(outcome).toEqual({ code: 0, words: ["xcache.orders:1|c"], errors: "" });
  });
});
