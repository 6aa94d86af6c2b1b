// The package as it is published, installed by npm into an empty folder without any optional package.
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { emptyFolder, run, runtimeDependencies } from "../../scripts/test/extras-folder.mjs";
import { EXTRAS } from "../../src/cli/doctor/extras.ts";
import { startMemcached } from "../support/memcached.ts";
import { startRedis } from "../support/redis.ts";
import { runFolder } from "../support/run-folder.ts";
import { addInstalledPackage } from "./installed-package.ts";

/** On disk, a tenth more than it is. */
const MOST_BYTES = 4_000_000;
const place = mkdtempSync(join(runFolder(), "extras-"));
let app: string;

beforeAll(async () => {
  app = emptyFolder(place);
  await addInstalledPackage(app);
});
afterAll(() => rmSync(place, { recursive: true }));

test("brings its dependencies along and nothing else", () => {
  const installed = readdirSync(join(app, "node_modules")).filter((name) => !name.startsWith("."));
  const expected = ["xcache", ...runtimeDependencies().map((place) => basename(place))];
  expect(installed.sort()).toEqual(expected.sort());
});

test("weighs with all that comes along no more than its budget", () => {
  const files = readdirSync(join(app, "node_modules"), { recursive: true, withFileTypes: true });
  const sizes = files
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => statSync(join(parentPath, name)).size);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MOST_BYTES);
});

test("has entry points that load without any other package, but for Nest's", async () => {
  const outcomes = JSON.parse(await run(app, ["entry-points.mjs"])) as Record<string, string>;
  expect(Object.keys(outcomes)).toContain("xcache/web/fastify");
  for (const [name, outcome] of Object.entries(outcomes))
    expect(outcome, name).toBe(name === "xcache/ecosystem/nest" ? "MISSING_PEER" : "loads");
});

test("works with the stores that need no other package", async () => {
  await using redis = await startRedis();
  await using memcached = await startMemcached();
  const said = await run(app, ["smoke.mjs", redis.url, `memcached://127.0.0.1:${memcached.port}`]);
  expect(said).toContain("works with memory, redis, memcached on Node");
});

test("names the package and the command where a feature needs one", async () => {
  const outcomes = JSON.parse(await run(app, ["--no-warnings", "peers.mjs"])) as Record<string, unknown>;
  // A session of prisma is the application's own: where there is one, so is the package.
  const { prisma: _, ...extras } = EXTRAS;
  const needed = new Set<string>([...Object.values(extras).flat(), "keyv"]);
  for (const name of needed) {
    const command = expect.stringContaining(`npm install "${name}@`);
    const missing = { code: "MISSING_PEER", packageName: name, command };
    expect(outcomes[name], name).toEqual(name === "@prometheus-io/client" ? "works without" : missing);
  }
});

test("prints the command that installs all of them", async () => {
  const program = "node_modules/.bin/xcache";
  const { command } = JSON.parse(await run(app, [program, "extras", "full", "--json"])) as {
    command: string;
  };
  for (const name of EXTRAS.full) expect(command).toMatch(new RegExp(`^npm install .*${name}@`));
});
