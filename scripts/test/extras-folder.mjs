// Shared by the checks of the published package: the tarball, empty folders that it is installed into, and the consumers.
import { execFile, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { npmEnvironment } from "../release/npm-environment.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CONSUMERS = join(ROOT, "test", "extras", "consumer");
const QUIET = ["--no-audit", "--no-fund", "--loglevel=error"];

/** The TypeScript settings that the package is checked with, and the consumers compiled under each. */
export const TYPE_CHECKS = [
  {
    name: "node16, CommonJS by import()",
    files: ["esm.mts", "dynamic.cts"],
    options: { module: "node16", moduleResolution: "node16" },
  },
  {
    name: "node16, CommonJS by require",
    files: ["esm.mts", "cjs.cts"],
    options: { module: "node20", moduleResolution: "node16" },
  },
  {
    name: "nodenext",
    files: ["esm.mts", "cjs.cts"],
    options: { module: "nodenext", moduleResolution: "nodenext" },
  },
  {
    name: "bundler",
    files: ["esm.mts", "cjs.cts"],
    options: { module: "preserve", moduleResolution: "bundler" },
  },
];

/** The same for the consumer of every adapter, which is both kinds of module. */
export const ADAPTER_CHECKS = TYPE_CHECKS.filter(({ files }) => files.includes("cjs.cts")).map((check) => ({
  ...check,
  files: ["adapters.mts", "adapters.cts"],
}));

/** What that consumer imports besides ours, and the types of those that do not include them. */
export const ADAPTED = [
  "@apollo/server",
  "@apollo/utils.keyvaluecache",
  "@nestjs/common",
  "@prisma/adapter-pg",
  "@prisma/client",
  "@types/express",
  "@types/koa",
  "@types/pg",
  "cache-manager",
  "drizzle-orm",
  "express",
  "fastify",
  "graphql",
  "hono",
  "keyv",
  "knex",
  "koa",
  "kysely",
  "next",
  "pg",
  "react",
  "react-dom",
  "reflect-metadata",
  "rxjs",
  "typeorm",
  "unstorage",
];

/** Those, as npm install arguments. */
export function adaptedPackages() {
  /** @type {{ devDependencies: Record<string, string> }} */
  const { devDependencies } = manifest();
  return ADAPTED.map((name) => `${name}@${devDependencies[name]}`);
}

const manifest = () => JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

/** Options of every check. Declarations of the package are checked as well. */
export const STRICT = { target: "es2023", strict: true, noEmit: true, skipLibCheck: false, types: ["node"] };

/**
 * Packs this package, or others by their folders. Returns the paths of the tarballs.
 * @param {string} folder
 * @param {readonly string[]} packages
 */
export async function pack(folder, packages = [ROOT]) {
  mkdirSync(folder, { recursive: true });
  const args = ["pack", "--ignore-scripts", "--json", "--loglevel=error", ...packages];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: folder, env: npmEnvironment() });
  /** @type {{ filename: string }[]} */
  const packed = Object.values(JSON.parse(stdout));
  return packed.map(({ filename }) => join(folder, filename));
}

/** The folders of the package's dependencies, from this checkout. */
export function runtimeDependencies() {
  /** @type {{ dependencies: Record<string, string> }} */
  const { dependencies } = manifest();
  return Object.keys(dependencies).map((name) => join(ROOT, "node_modules", name));
}

/**
 * An empty application with the consumers in it.
 * @param {string} parent
 */
export function emptyFolder(parent) {
  const folder = mkdtempSync(join(parent, "app-"));
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  cpSync(CONSUMERS, folder, { recursive: true });
  copyFileSync(join(folder, "adapters.mts"), join(folder, "adapters.cts"));
  return folder;
}

/**
 * Runs npm install in a folder. Rejects with npm's output.
 * @param {string} folder
 * @param {readonly string[]} packages
 * @param {{ program?: string, offline?: boolean }} [how] `program`: the node that npm itself runs on
 */
export async function install(folder, packages, { program = process.execPath, offline = false } = {}) {
  const args = ["install", ...QUIET, ...(offline ? ["--offline"] : []), ...packages];
  await promisify(execFile)("npm", args, { cwd: folder, env: npmEnvironment(program) });
}

/**
 * Runs a program in a folder and returns its output.
 * @param {string} folder
 * @param {readonly string[]} args
 */
export async function run(folder, args, program = process.execPath) {
  const { stdout } = await promisify(execFile)(program, args, { cwd: folder, env: npmEnvironment(program) });
  return stdout;
}

/**
 * Compiles the consumers with the compiler of its folder. Returns the compiler's output; empty when all is well.
 * @param {string} folder
 * @param {(typeof TYPE_CHECKS)[number]} check
 */
export function compile(folder, { files, options }) {
  const project = join(folder, "tsconfig.json");
  writeFileSync(project, JSON.stringify({ compilerOptions: { ...STRICT, ...options }, files }));
  const compiler = join(folder, "node_modules", "typescript", "bin", "tsc");
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [compiler, "-p", project], {
    encoding: "utf8",
  });
  return status === 0 ? "" : stdout + stderr || `the compiler ended with ${signal ?? status}`;
}
