// Uses every feature that needs another package. Prints as JSON, for each package, whether it works or what the error says.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { AlertManager, MissingPeerError, OtelCollector, PullCollector, XCache } from "xcache";

const memoryCache = () => new XCache({ kvUrl: "memory://" });

function mail() {
  const alerts = new AlertManager(memoryCache(), { smtp: { host: "localhost", from: "a@example.com" } });
  const terms = { name: "low", metric: "hit_rate", comparison: "less_than", threshold: 0.5 };
  alerts.addAlert({ ...terms, emailRecipients: ["b@example.com"] });
}

async function disk() {
  const folder = mkdtempSync(join(tmpdir(), "xcache-peers-"));
  try {
    const cache = new XCache({ kvUrl: pathToFileURL(folder).href, connectTimeout: 20, operationTimeout: 20 });
    await cache.connect();
    await cache.set("key", "value");
    if ((await cache.get("key")) !== "value") throw new Error("the store on disk lost a value");
    await cache.disconnect();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Metrics work without a client library; where there is one, its default registry has our series too. */
async function prometheus() {
  const collector = new PullCollector();
  if (!(await collector.metrics()).includes("xcache_")) throw new Error("there are no series");
  const client = await import("@prometheus-io/client").catch(() => undefined);
  if (client === undefined) return "works without";
  if (!(await client.register.metrics()).includes("xcache_")) throw new Error("the registry has no series");
}

/** Without usearch every vector is compared, and the error is told to who listens. */
async function vectors() {
  const { SemanticCache } = await import("xcache/vector");
  const answers = new SemanticCache({ cache: memoryCache(), namespace: "n", threshold: 0.5, exactUpTo: 0 });
  let failure;
  answers.on("error", ({ error }) => {
    failure = error;
  });
  await answers.set("how do I cook rice", "in water");
  if ((await answers.get("how do I cook rice?")) !== "in water") throw new Error("an answer was not found");
  answers.close();
  if (failure !== undefined) throw failure;
}

/** A package of an older version has no such entry point. */
async function keyvStore() {
  const { cacheManagerStore } = await import("xcache/ecosystem/cache-manager");
  await cacheManagerStore(memoryCache()).disconnect();
}

const FEATURES = {
  "@opentelemetry/api": () => void new OtelCollector(),
  "@prometheus-io/client": prometheus,
  keyv: keyvStore,
  lmdb: disk,
  nodemailer: mail,
  usearch: vectors,
};

async function outcomeOf(use) {
  try {
    return (await use()) ?? "works";
  } catch (error) {
    // A version without that entry point.
    if (error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED") return "not exported";
    if (!(error instanceof MissingPeerError)) throw error;
    return { code: error.code, packageName: error.packageName, command: error.installCommand };
  }
}

const outcomes = {};
for (const [name, use] of Object.entries(FEATURES)) outcomes[name] = await outcomeOf(use);
console.log(JSON.stringify(outcomes));
