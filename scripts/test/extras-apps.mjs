// Applications that already use a library: the package is added to each, as its owner would do it with
// npm, pnpm or yarn, and the adapter is used there.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { npmEnvironment } from "../release/npm-environment.mjs";
import { nodeOfRelease } from "./node-release.mjs";
import { programFromNpm } from "./npm-program.mjs";

const APPS_FOLDER = fileURLToPath(new URL("../../test/extras/apps", import.meta.url));
/** No step takes longer, even on a slow machine; a hang is a failure. */
const LIMIT_MS = 600_000;
const SQLITE = "libsql@0.5";
const REACT = ["react@19", "react-dom@19"];

/** @param {string} major @param {string} [platform] */
const nest = (major, platform = "express") => [
  ...["common", "core", `platform-${platform}`].map((part) => `@nestjs/${part}@${major}`),
  "reflect-metadata@0.2",
  "rxjs@7",
];
/** @param {string} version */
const prisma = (version) =>
  ["prisma", "@prisma/client", "@prisma/adapter-libsql"].map((name) => `${name}@${version}`);
/** What a client that Prisma 7 generates into the application imports; only npm and yarn 1 put it where it is found. */
const PRISMA_7_RUNTIME = "@prisma/client-runtime-utils@7";

/**
 * What the application has installed, and the program that uses the adapter. `release`: the Node that it needs.
 * @type {readonly { name: string, program: string, packages: readonly string[], release?: string }[]}
 */
export const APPS = [
  { name: "express 4", program: "express", packages: ["express@4"] },
  { name: "express 5", program: "express", packages: ["express@5"] },
  { name: "fastify 4", program: "fastify", packages: ["fastify@4"] },
  { name: "fastify 5", program: "fastify", packages: ["fastify@5"] },
  { name: "koa 2", program: "koa", packages: ["koa@2"] },
  { name: "koa 3", program: "koa", packages: ["koa@3"] },
  { name: "hono 4.0", program: "hono", packages: ["hono@~4.0"] },
  { name: "hono 4", program: "hono", packages: ["hono@4"] },
  { name: "next 15", program: "next", packages: ["next@15", ...REACT, "lmdb@3"] },
  { name: "next 16", program: "next", packages: ["next@16", ...REACT, "lmdb@3"] },
  { name: "nest 10", program: "nest", packages: nest("10") },
  { name: "nest 11", program: "nest", packages: nest("11") },
  { name: "nest 12", program: "nest", packages: nest("12") },
  ...["10", "11"].flatMap((major) =>
    ["express", "fastify"].map((platform) => ({
      name: `nest ${major} on ${platform}`,
      program: "nest-web",
      packages: nest(major, platform),
    })),
  ),
  { name: "prisma 6.16", program: "prisma", packages: [...prisma("~6.16"), SQLITE] },
  { name: "prisma 6", program: "prisma", packages: [...prisma("6"), SQLITE] },
  { name: "prisma 7", program: "prisma", packages: [...prisma("7"), PRISMA_7_RUNTIME, SQLITE] },
  { name: "typeorm 0.3", program: "typeorm", packages: ["typeorm@0.3", "reflect-metadata@0.2", SQLITE] },
  { name: "typeorm 1", program: "typeorm", packages: ["typeorm@1", "reflect-metadata@0.2", SQLITE] },
  { name: "kysely 0.27", program: "kysely", packages: ["kysely@0.27", SQLITE] },
  { name: "kysely 0.28", program: "kysely", packages: ["kysely@0.28", SQLITE] },
  { name: "kysely 0.29", program: "kysely", packages: ["kysely@0.29", SQLITE] },
  {
    name: "mikro-orm 7",
    program: "mikro-orm",
    packages: ["@mikro-orm/core@7", "@mikro-orm/libsql@7", "kysely@0.29", SQLITE],
    release: "24",
  },
  { name: "drizzle 0.36", program: "drizzle", packages: ["drizzle-orm@~0.36", SQLITE] },
  { name: "drizzle 0.40", program: "drizzle", packages: ["drizzle-orm@~0.40", SQLITE] },
  { name: "drizzle 0.45", program: "drizzle", packages: ["drizzle-orm@~0.45", SQLITE] },
  { name: "knex 3", program: "knex", packages: ["knex@3", "better-sqlite3@npm:libsql@0.5", SQLITE] },
  { name: "pg 8", program: "pg", packages: ["pg@8"] },
  { name: "pg 8, libpg-query 17", program: "pg", packages: ["pg@8", "libpg-query@17"] },
  { name: "pg 8, libpg-query 18", program: "pg", packages: ["pg@8", "libpg-query@18"] },
  { name: "keyv 4", program: "keyv", packages: ["keyv@4"] },
  { name: "keyv 5", program: "keyv", packages: ["keyv@5"] },
  { name: "keyv 6", program: "keyv", packages: ["keyv@6"] },
  { name: "cache-manager 6", program: "cache-manager", packages: ["cache-manager@6", "keyv@5"] },
  { name: "cache-manager 7", program: "cache-manager", packages: ["cache-manager@7", "keyv@5"] },
  { name: "apollo 4", program: "apollo", packages: ["@apollo/server@4", "graphql@16"] },
  { name: "apollo 5", program: "apollo", packages: ["@apollo/server@5", "graphql@16"] },
  { name: "unstorage 1.10", program: "unstorage", packages: ["unstorage@~1.10"] },
  { name: "unstorage 1", program: "unstorage", packages: ["unstorage@1"] },
  ...["6", "7", "8", "10"].map((major) => ({
    name: `nodemailer ${major}`,
    program: "nodemailer",
    packages: [`nodemailer@${major}`],
  })),
  { name: "prom-client 14", program: "prometheus", packages: ["prom-client@14"] },
  { name: "prom-client 15", program: "prometheus", packages: ["prom-client@15"] },
  { name: "opentelemetry 1.3", program: "opentelemetry", packages: ["@opentelemetry/api@~1.3"] },
  { name: "opentelemetry 1", program: "opentelemetry", packages: ["@opentelemetry/api@1"] },
  { name: "lmdb 3.0", program: "lmdb", packages: ["lmdb@~3.0"] },
  { name: "lmdb 3", program: "lmdb", packages: ["lmdb@3"] },
];

/**
 * A package manager: how it adds packages in a folder, and how a program is run there. No package scripts run: what
 * they would download is not needed.
 * @typedef {object} Manager
 * @property {(folder: string) => void} [prepare]
 * @property {(node: string) => readonly string[]} add
 * @property {(node: string) => readonly string[]} [run]
 */

/** @type {Readonly<Record<string, (place: string) => Manager>>} */
export const MANAGERS = {
  npm: () => ({
    add: () => ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts"],
  }),
  pnpm: (place) => ({
    add: (node) => [
      node,
      programFromNpm("pnpm@10", "bin/pnpm.cjs"),
      "add",
      "--ignore-scripts",
      "--reporter=silent",
      `--store-dir=${join(place, "pnpm-store")}`,
    ],
  }),
  yarn: (place) => ({
    add: (node) => [
      node,
      programFromNpm("yarn@1", "bin/yarn.js"),
      "add",
      "--ignore-scripts",
      "--silent",
      "--non-interactive",
      `--cache-folder=${join(place, "yarn-cache")}`,
    ],
  }),
  // Plug'n'Play: no node_modules, and only what a package declares can be imported by it.
  "yarn 4": (place) => {
    const program = () => programFromNpm("@yarnpkg/cli-dist@4", "bin/yarn.js");
    return {
      prepare(folder) {
        const settings = ["nodeLinker: pnp", "enableScripts: false", "enableTelemetry: false"];
        const global = [`globalFolder: ${JSON.stringify(join(place, "yarn-4"))}`, "enableGlobalCache: true"];
        writeFileSync(join(folder, ".yarnrc.yml"), `${[...settings, ...global].join("\n")}\n`);
        writeFileSync(join(folder, "yarn.lock"), "");
      },
      add: (node) => [node, program(), "add"],
      run: (node) => [node, program(), "node"],
    };
  },
};

/**
 * Installs the application, adds the package and runs the program. Returns its output; rejects with what failed.
 * @param {string} place a folder for all applications
 * @param {string} tarball
 * @param {(typeof APPS)[number]} app
 * @param {Manager} manager
 */
export async function tryApp(place, tarball, { program, packages, release }, manager) {
  const node = release === undefined ? process.execPath : nodeOfRelease(release);
  const folder = mkdtempSync(join(place, `${program}-`));
  mkdirSync(folder, { recursive: true });
  const manifest = { name: "app", version: "1.0.0", private: true, type: "module" };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  cpSync(APPS_FOLDER, folder, { recursive: true });
  manager.prepare?.(folder);
  await call(folder, [...manager.add(node), ...packages]);
  await call(folder, [...manager.add(node), `xcache@file:${tarball}`]);
  const said = await call(folder, [...(manager.run?.(node) ?? [node]), `${program}.mjs`]);
  return said.trim().split("\n").at(-1) ?? basename(folder);
}

/**
 * @param {string} cwd
 * @param {readonly string[]} command
 */
async function call(cwd, [program = process.execPath, ...args]) {
  const registry = process.env.npm_config_registry ?? "https://registry.npmjs.org";
  const env = {
    ...npmEnvironment(),
    npm_config_registry: registry,
    YARN_NPM_REGISTRY_SERVER: registry.replace(/\/$/, ""),
  };
  try {
    return (await promisify(execFile)(program, args, { cwd, env, maxBuffer: 1e8, timeout: LIMIT_MS })).stdout;
  } catch (error) {
    const {
      stdout = "",
      stderr = "",
      message,
    } = /** @type {Error & { stdout?: string, stderr?: string }} */ (error);
    throw new Error(`${stderr}${stdout}`.trim().slice(-2_000) || message);
  }
}
