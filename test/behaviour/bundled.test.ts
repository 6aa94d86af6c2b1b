// The library in a bundle of one file: what it loads at run time is found from there, and the dashboard's page is in it.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { type Plugin, rollup } from "rollup";
import { transformWithEsbuild } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadLmdb } from "../../src/backends/disk/lmdb.ts";
import { MissingPeerError } from "../../src/core/errors.ts";

const ROOT = resolve(import.meta.dirname, "../..");

const APPLICATION = `
  import { dashboard } from "./src/dashboard/index.ts";
  import { drizzleCache } from "./src/db/drizzle.ts";
  import { installedParser } from "./src/db/sql/postgres-parser.ts";
  import { AlertManager, DiskBackend, OtelCollector, PullCollector, XCache } from "./src/index.ts";
  import { openGraph } from "./src/vector/graph.ts";

  const cache = new XCache({ kvUrl: "memory://" });
  const parts = {
    PullCollector: () => new PullCollector(),
    OtelCollector: () => new OtelCollector(),
    drizzleCache: () => drizzleCache({ cache }),
    usearch: () => openGraph("cosine", 3),
    parser: () => {
      if (installedParser() === undefined) throw new Error("not found");
    },
    mail: () => {
      const alerts = new AlertManager(cache, { smtp: { host: "127.0.0.1", from: "cache@example.com" } });
      const alert = { name: "hits", metric: "hit_rate", comparison: "less_than", threshold: 0.7 };
      alerts.addAlert({ ...alert, emailRecipients: ["ops@example.com"] });
    },
    page: async () => {
      const board = dashboard({ cache, authorize: () => true });
      const { status } = await board.fetch(new Request("http://admin.example/"));
      if (status !== 200) throw new Error("status " + status);
    },
    disk: async () => {
      const backend = new DiskBackend({ directory: process.argv[2] });
      const stored = new XCache({ backend });
      await stored.set("a", 1);
      await stored.disconnect();
    },
  };
  const run = async () => {
    const outcomes = {};
    for (const [name, use] of Object.entries(parts)) {
      outcomes[name] = await Promise.resolve().then(use).then(() => "works", String);
    }
    console.log(JSON.stringify(outcomes));
    process.exit(0);
  };
  void run();
`;

const application: Plugin = {
  name: "application",
  resolveId: (id) => (id === "application" ? join(ROOT, "application.ts") : null),
  load: (id) => (id === join(ROOT, "application.ts") ? APPLICATION : readFileSync(id, "utf8")),
  transform: async (code, id) => (id.endsWith(".ts") ? (await transformWithEsbuild(code, id)).code : null),
};

let folder: string;
let code: string;

beforeAll(async () => {
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  folder = mkdtempSync(join(ROOT, ".cache/bundled-"));
  mkdirSync(join(folder, "dist"));
  const external = (id: string): boolean => id !== "application" && !id.startsWith(".") && !isAbsolute(id);
  const bundle = await rollup({ input: "application", external, plugins: [application], onLog: () => {} });
  const { output } = await bundle.generate({ format: "es", inlineDynamicImports: true });
  await bundle.close();
  code = output[0].code;
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ["cjs", "cjs"],
  ["mjs", "esm"],
] as const)("everything works in a bundle that is a file.%s", async (extension, format) => {
  const file = join(folder, "dist", `bundle.${extension}`);
  const { code: bundled } = await transformWithEsbuild(code, "bundle.js", { format, platform: "node" });
  writeFileSync(file, bundled);
  const said = execFileSync(process.execPath, [file, join(folder, format)], { encoding: "utf8" });
  const names = [
    "PullCollector",
    "OtelCollector",
    "drizzleCache",
    "usearch",
    "parser",
    "mail",
    "page",
    "disk",
  ];
  expect(JSON.parse(said)).toEqual(Object.fromEntries(names.map((name) => [name, "works"])));
});

test("lmdb in a bundle, which does not find its binary, says what to do", async () => {
  const cause = new TypeError('The "path" argument must be of type string. Received undefined');
  const error = await loadLmdb(() => Promise.reject(cause)).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(MissingPeerError);
  expect(error).toMatchObject({ code: "MISSING_PEER", packageName: "lmdb", cause });
  expect((error as MissingPeerError).message).toMatch(
    /^DiskBackend needs the package "lmdb", which does not load \(The "path" .*\)\. .*keep it out of a bundle/,
  );
  expect((error as MissingPeerError).hint).toContain("keep it out of a bundle");
});
