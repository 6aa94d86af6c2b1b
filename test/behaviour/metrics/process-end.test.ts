// Collectors keep no process alive, whatever they have open or on its way.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runFolder } from "../../support/run-folder.ts";

const run = promisify(execFile);
const PARTS = ["collectors/cache-metrics", "prometheus/pull", "statsd/push"];
const folder = mkdtempSync(join(runFolder(), "collectors-"));

beforeAll(() =>
  build({
    configFile: false,
    logLevel: "silent",
    build: {
      ssr: true,
      rollupOptions: {
        input: PARTS.map((part) => join(import.meta.dirname, `../../../src/metrics/${part}.ts`)),
      },
      outDir: folder,
      emptyOutDir: true,
    },
  }),
);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a process prints that ends by itself. */
async function printed(body: string): Promise<string> {
  const partAt = (part: string): string => JSON.stringify(pathToFileURL(join(folder, `${part}.js`)).href);
  const program = `
    import { CacheMetrics } from ${partAt("cache-metrics")};
    import { PullCollector } from ${partAt("pull")};
    import { PushCollector } from ${partAt("push")};
    ${body}
  `;
  const args = ["--input-type=module", "-e", program];
  const { stdout, stderr } = await run(process.execPath, args, { timeout: 15_000 });
  return stdout + stderr;
}

describe("a process ends by itself", () => {
  it("with an endpoint that listens, a client that stays connected and datagrams that wait", async () => {
    const output = await printed(`
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
      console.log("done");
    `);
    expect(output).toBe("done\n");
  });

  it("after close() has sent the last datagrams, which it waits for", async () => {
    const output = await printed(`
      import { createSocket } from "node:dgram";
      const daemon = createSocket("udp4");
      const came = new Promise((resolve) => daemon.once("message", resolve));
      await new Promise((resolve) => daemon.bind(0, "127.0.0.1", resolve));
      const metrics = new CacheMetrics([new PushCollector({ port: daemon.address().port })]);
      daemon.unref();
      metrics.increment("orders");
      await metrics.close();
      daemon.ref();
      console.log(String(await came));
      daemon.close();
    `);
    expect(output).toBe("xcache.orders:1|c\n");
  });
});
