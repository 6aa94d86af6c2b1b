// `node bench/kv/reshard.mjs [--slots 8192]`: half of a cluster's slots move under load while clients come and go; xcache next to ioredis.
//
// Both run at the same time on the same cluster. A writer raises the version of each key; a reader that begins after an
// acknowledged write must not get an older version. Newcomers connect, write, read and leave all the time.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import Redis from "ioredis";
import { runnerImport } from "vite";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { XCache } = await import(join(ROOT, "dist/index.js"));
const { values } = parseArgs({ options: { slots: { type: "string", default: "8192" } } });
const KEYS = Array.from({ length: 500 }, (_, at) => `key-${at}`);
const PAUSE_MS = 2;
const NEWCOMERS_EACH_MS = 250;

/** Sources are TypeScript, which not every supported Node can run by itself. */
const load = async (path) =>
  (await runnerImport(join(ROOT, path), { configFile: false, root: ROOT, logLevel: "error" })).module;

const { setup, teardown } = await load("test/support/servers.global.ts");
const { startCluster } = await load("test/support/redis-cluster.ts");
const { seats } = await load("test/support/kv/cluster-layout.ts");

const LIBRARIES = {
  xcache: (cluster) => {
    const cache = new XCache({ kvUrl: cluster.url, operationTimeout: 2, connectTimeout: 2, keyPrefix: "x" });
    // Failures without a caller show in the calls as well.
    cache.on("error", () => {});
    return {
      ready: () => cache.connect(),
      get: (key) => cache.get(key),
      set: (key, value) => cache.set(key, value, { ttl: 600 }),
      close: () => cache.disconnect(),
    };
  },
  ioredis: (cluster) => {
    const nodes = cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
    const client = new Redis.Cluster(nodes, {
      redisOptions: { commandTimeout: 2_000, connectTimeout: 2_000 },
    });
    client.on("error", () => {});
    return {
      ready: () => once(client, "ready"),
      get: async (key) => {
        const text = await client.get(`i:${key}`);
        return text === null ? undefined : JSON.parse(text);
      },
      set: (key, value) => client.set(`i:${key}`, JSON.stringify(value), "EX", 600),
      close: async () => client.disconnect(),
    };
  },
};

class Load {
  counts = { calls: 0, errors: 0, stale: 0, missing: 0, newcomers: 0, failedNewcomers: 0 };
  errors = new Map();
  #acknowledged = new Map();
  #isOver = false;
  #open;

  constructor(open) {
    this.#open = open;
  }

  async run() {
    const [writer, reader] = [this.#open(), this.#open()];
    await Promise.all([writer.ready(), reader.ready()]);
    for (const key of KEYS) await this.#write(writer, key, 0);
    const running = [this.#writing(writer), this.#reading(reader), this.#visiting()];
    return async () => {
      this.#isOver = true;
      await Promise.all(running);
      await Promise.all([writer.close(), reader.close()]);
    };
  }

  async #try(call) {
    this.counts.calls++;
    try {
      return { value: await call() };
    } catch (error) {
      this.counts.errors++;
      const name = `${error.name}: ${error.message}`.replaceAll(/\d+/g, "n").slice(0, 100);
      this.errors.set(name, (this.errors.get(name) ?? 0) + 1);
      return undefined;
    }
  }

  async #write(client, key, version) {
    if ((await this.#try(() => client.set(key, version))) !== undefined) this.#acknowledged.set(key, version);
  }

  async #writing(client) {
    for (let version = 1; !this.#isOver; version++) {
      await this.#write(client, KEYS[version % KEYS.length], version);
      await after(PAUSE_MS);
    }
  }

  async #read(client, key) {
    const atLeast = this.#acknowledged.get(key);
    const outcome = await this.#try(() => client.get(key));
    if (outcome === undefined) return;
    if (outcome.value === undefined) this.counts.missing++;
    else if (outcome.value < atLeast) this.counts.stale++;
  }

  async #reading(client) {
    for (let at = 0; !this.#isOver; at += 7) {
      await this.#read(client, KEYS[at % KEYS.length]);
      await after(PAUSE_MS);
    }
  }

  async #visiting() {
    while (!this.#isOver) {
      const client = this.#open();
      this.counts.newcomers++;
      const isReady = await this.#try(() => client.ready());
      if (isReady === undefined) this.counts.failedNewcomers++;
      for (let at = 0; at < 10; at++) await this.#read(client, KEYS[(at * 37) % KEYS.length]);
      await client.close();
      await after(NEWCOMERS_EACH_MS);
    }
  }
}

async function reshard(cluster) {
  const masters = (await seats(cluster)).filter(({ masterId }) => masterId === undefined);
  const [to, ...others] = masters;
  const port = cluster.nodes[0].port;
  const args = [
    "--cluster",
    "reshard",
    `127.0.0.1:${port}`,
    "--cluster-from",
    others.map(({ id }) => id).join(","),
  ];
  const child = spawn(
    "redis-cli",
    [...args, "--cluster-to", to.id, "--cluster-slots", values.slots, "--cluster-yes"],
    { stdio: "ignore" },
  );
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`redis-cli ended with code ${code}`);
}

setup();
try {
  const cluster = await startCluster({ replicas: 0 });
  const loads = Object.entries(LIBRARIES).map(([name, open]) => [name, new Load(() => open(cluster))]);
  const ends = await Promise.all(loads.map(([, load]) => load.run()));
  const begun = performance.now();
  await reshard(cluster);
  const seconds = (performance.now() - begun) / 1_000;
  for (const end of ends) await end();
  console.log(`${values.slots} slots moved in ${seconds.toFixed(0)} s`);
  console.table(Object.fromEntries(loads.map(([name, { counts }]) => [name, counts])));
  for (const [name, { errors }] of loads)
    for (const [error, count] of errors) console.log(name, count, error);
  await cluster.stop();
} finally {
  teardown();
}
process.exit();
