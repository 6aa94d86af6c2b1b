// `npm run test:extras [-- 24 full]`: packs the package and installs it from the registry into empty folders, bare, with each
// extra and with all of them, under Node 20 and 24; then into applications that have other libraries in old and new versions;
// then has its types read by consumers of every kind, those of the adapters beside the libraries they are for. Prints a
// table. A row is run if its title has every argument in it: `npm run test:extras -- "keyv 4, npm"`. With `--record`, what
// became of the applications is kept for the table in docs/guide/extras.md.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildIfStale } from "../build/build.mjs";
import { APPS, MANAGERS, tryApp } from "./extras-apps.mjs";
import {
  ADAPTER_CHECKS,
  adaptedPackages,
  compile,
  emptyFolder,
  install,
  pack,
  run,
  TYPE_CHECKS,
} from "./extras-folder.mjs";
import { knownGap, record, renewPage } from "./install-matrix.mjs";
import { nodeOfRelease } from "./node-release.mjs";

const RELEASES = ["20", "24"];
const COMPILERS = ["~5.9.0", "~6.0.0"];
/** An empty list of extras: the bare package. */
const SETS = [[], ["vector"], ["monitoring"], ["memcached"], ["fuzzy"], ["web"], ["full"]];

/** @typedef {Record<string, "works" | "works without" | "not exported" | { code: string, command: string }>} Outcomes */

/**
 * Installs the package and a set of extras by the command it prints itself, and uses what should work then.
 * @param {string} tarball
 * @param {readonly string[]} extras
 * @param {string} program
 */
async function checkSet(tarball, extras, program) {
  const folder = emptyFolder(place);
  await install(folder, [tarball], { program });
  const cli = "node_modules/.bin/xcache";
  /** @type {string[]} */
  let wanted = [];
  if (extras.length > 0) {
    const { packages } = JSON.parse(await run(folder, [cli, "extras", ...extras, "--json"], program));
    wanted = packages;
    if (wanted.length > 0) await run(folder, [cli, "extras", ...extras, "--install"], program);
  }
  const said = (await run(folder, ["smoke.mjs"], program)).trim();
  /** @type {Outcomes} */
  const outcomes = JSON.parse(await run(folder, ["--no-warnings", "peers.mjs"], program));
  for (const [name, outcome] of Object.entries(outcomes)) {
    const isRight = wanted.includes(name)
      ? outcome === "works"
      : typeof outcome === "string" || outcome.command.startsWith(`npm install "${name}@`);
    if (!isRight)
      throw new Error(`${name} should work or say how to install it, got ${JSON.stringify(outcome)}`);
  }
  const working = Object.keys(outcomes).filter((name) => outcomes[name] === "works");
  return `${said}; ${working.join(", ") || "no optional package"}`;
}

/**
 * @param {string} tarball
 * @param {string} compiler
 * @param {typeof TYPE_CHECKS} checks
 * @param {readonly string[]} others what the consumers import besides
 */
async function checkTypes(tarball, compiler, checks, others = []) {
  const folder = emptyFolder(place);
  await install(folder, [tarball, `typescript@${compiler}`, "@types/node@20", ...others]);
  const failed = checks.flatMap((check) => {
    const said = compile(folder, check);
    return said === "" ? [] : [`${check.name}:\n${said}`];
  });
  if (failed.length > 0) throw new Error(failed.join("\n"));
  const { version } = JSON.parse(readFileSync(join(folder, "node_modules/typescript/package.json"), "utf8"));
  return `${checks.map(({ name }) => name).join("; ")} (${version})`;
}

/** Errors in other libraries' declarations are theirs; ours are checked by the tests. */
const BESIDE_OTHERS = ADAPTER_CHECKS.map((check) => ({
  ...check,
  options: { ...check.options, skipLibCheck: true },
}));

const words = process.argv.slice(2).filter((word) => word !== "--record");
const isRecording = process.argv.includes("--record");
let failures = 0;
/**
 * @param {string} title
 * @param {() => Promise<string>} check
 * @param {(outcome: string | null) => void} [keep] what worked; null: it failed
 * @param {string} [gap] why it is known to fail
 */
async function report(title, check, keep = () => {}, gap = undefined) {
  if (!words.every((word) => title.includes(word))) return;
  const began = performance.now();
  let verdict = "ok     ";
  /** @type {string} */
  let detail;
  try {
    detail = await check();
    keep(detail);
  } catch (error) {
    if (gap === undefined) failures++;
    verdict = gap === undefined ? "FAILED " : "known  ";
    detail = gap ?? (error instanceof Error ? error.message : String(error));
    keep(null);
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(0).padStart(3);
  console.log(`${verdict} ${title.padEnd(27)} ${seconds} s  ${detail}`);
}

const builtWith = buildIfStale();
if (builtWith !== 0) process.exit(builtWith);
const place = mkdtempSync(join(tmpdir(), "xcache-extras-"));
try {
  const [tarball = ""] = await pack(place);
  for (const release of RELEASES) {
    const program = nodeOfRelease(release);
    for (const extras of SETS) {
      const name = extras.join(" ") || "bare";
      await report(`Node ${release}, ${name}`, () => checkSet(tarball, extras, program));
    }
  }
  for (const app of APPS)
    for (const [name, manager] of Object.entries(MANAGERS))
      await report(
        `${app.name}, ${name}`,
        () => tryApp(place, tarball, app, manager(place)),
        (outcome) => isRecording && record(app.name, name, outcome),
        knownGap(app.name, name),
      );
  for (const compiler of COMPILERS) {
    await report(`TypeScript ${compiler}`, () => checkTypes(tarball, compiler, TYPE_CHECKS));
    await report(`TypeScript ${compiler}, adapters`, () =>
      checkTypes(tarball, compiler, BESIDE_OTHERS, adaptedPackages()),
    );
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
if (isRecording) renewPage();
console.log(failures === 0 ? "every install works" : `${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
