// What `npm run test:extras -- --record` saw: test/extras/install-matrix.json, and the table of it in docs/guide/extras.md.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { APPS, MANAGERS } from "./extras-apps.mjs";

const RECORD = fileURLToPath(new URL("../../test/extras/install-matrix.json", import.meta.url));
const PAGE = fileURLToPath(new URL("../../docs/guide/extras.md", import.meta.url));
/** The table has a section of the page to itself, after its first sentence. */
const BEGIN = "`npm run test:extras -- --record` writes this table.\n";
const END = "\n## Bun and Deno\n";

/**
 * By application and package manager: the versions that worked, or null for an installation that failed.
 * @typedef {Record<string, Record<string, string | null>>} InstallRecord
 */

/**
 * Why an installation cannot work, or not everywhere. Each failed row of the record has one of these reasons.
 * @type {readonly { app: RegExp, manager: RegExp, why: string }[]}
 */
const GAPS = [
  {
    app: /^(next|lmdb) /,
    manager: /^yarn/,
    why: "yarn resolves the packages of all platforms, and the registry that was used lacks some of them (`@next/swc-*`, `@msgpackr-extract/*`)",
  },
  {
    app: /^prisma /,
    manager: /^yarn 4$/,
    why: "`prisma generate` does not work under Plug'n'Play; set `nodeLinker: node-modules`",
  },
  {
    app: /./,
    manager: /^yarn$/,
    why: "yarn 1 refuses packages that ask for a newer Node than the one it runs on (20 here); use a newer Node, or `--ignore-engines`",
  },
];

/**
 * Why an application cannot be installed with a package manager.
 * @param {string} app
 * @param {string} manager
 */
export const gapOf = (app, manager) =>
  GAPS.find((each) => each.app.test(app) && each.manager.test(manager))?.why;

/**
 * Likewise, if the record says that it could not.
 * @param {string} app
 * @param {string} manager
 */
export const knownGap = (app, manager) =>
  readRecord()[app]?.[manager] === null ? gapOf(app, manager) : undefined;

/** @returns {InstallRecord} */
export const readRecord = () => JSON.parse(readFileSync(RECORD, "utf8"));

/**
 * Adds a row to the record, in the order of the matrix.
 * @param {string} app
 * @param {string} manager
 * @param {string | null} outcome
 */
export function record(app, manager, outcome) {
  const rows = readRecord();
  rows[app] = { ...rows[app], [manager]: outcome };
  const ordered = Object.fromEntries(
    APPS.flatMap(({ name }) => {
      const { [name]: row } = rows;
      if (row === undefined) return [];
      return [[name, Object.fromEntries(managersOf(row).map((each) => [each, row[each]]))]];
    }),
  );
  writeFileSync(RECORD, `${JSON.stringify(ordered, null, 2)}\n`);
}

/** Writes the table of the record into the page. */
export function renewPage() {
  const page = readFileSync(PAGE, "utf8");
  const from = placeIn(page);
  writeFileSync(PAGE, page.slice(0, from) + installTable(readRecord()) + page.slice(page.indexOf(END)));
}

/** @param {Record<string, unknown>} row */
const managersOf = (row) => Object.keys(MANAGERS).filter((name) => name in row);

/** The table as it stands in a page. @param {string} page */
export const tableIn = (page) => page.slice(placeIn(page), page.indexOf(END));

/** Where it begins. @param {string} page */
function placeIn(page) {
  const at = page.indexOf(BEGIN);
  if (at < 0 || page.indexOf(END) < at) throw new Error("the page has no place for the table");
  return at + BEGIN.length;
}

/**
 * The record as Markdown: a row per application, and the reasons for what failed below.
 * @param {InstallRecord} rows
 */
export function installTable(rows) {
  const managers = Object.keys(MANAGERS);
  /** @type {string[]} */
  const reasons = [];
  const lines = Object.entries(rows).map(([app, row]) => {
    const cells = managers.map((manager) => cellOf(app, manager, row[manager], reasons));
    const versions = [...new Set(Object.values(row).filter((outcome) => outcome !== null))];
    return `| ${[versions.join("; ") || app, ...cells].join(" | ")} |`;
  });
  const head = ["installed and used", ...managers.map((name) => (name === "yarn" ? "yarn 1" : name))];
  return [
    "",
    `| ${head.join(" | ")} |`,
    `|${"---|".repeat(head.length)}`,
    ...lines,
    "",
    ...reasons.map((why, index) => `${index + 1}. ${why[0]?.toUpperCase()}${why.slice(1)}.`),
    "",
  ].join("\n");
}

/**
 * @param {string} app
 * @param {string} manager
 * @param {string | null | undefined} outcome
 * @param {string[]} reasons those named so far
 */
function cellOf(app, manager, outcome, reasons) {
  if (outcome === undefined) return "not tried";
  if (outcome !== null) return "yes";
  const why = gapOf(app, manager);
  if (why === undefined) throw new Error(`no reason is known why ${app} fails with ${manager}`);
  if (!reasons.includes(why)) reasons.push(why);
  return `no (${reasons.indexOf(why) + 1})`;
}
