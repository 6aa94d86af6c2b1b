// docs/reference/http-conformance.md: the results of the public HTTP cache tests, a section per suite.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PAGE = fileURLToPath(new URL("../../docs/reference/http-conformance.md", import.meta.url));

/** @typedef {{ id: string, group: string, kind: string, result: string }} Item */

/** Why cases are not passed: the first that fits. @type {[RegExp, string][]} */
const REASONS = [
  [/^heuristic-/, "no heuristic lifetime from `Last-Modified`: `ttl` sets it"],
  [/^partial-store-/, "partial responses are not stored"],
  [/^other-(authorization|cookie)/, "a request with credentials is not cached without `user` or `shared`"],
  [/set-cookie/i, "a response with `Set-Cookie` is never stored"],
  [/^stale-close-/, "depends on serving stale content without permission, which is never done"],
  [/^method-POST$/, "the response to a `POST` is not stored for a `GET`"],
  [/^vary-normalise-lang-select$/, "languages are compared, not negotiated"],
  [/^conditional-lm-fresh-no-lm$/, "the client's date is older than the response"],
];

/** @param {Item} item */
function reasonFor({ id, result }) {
  if (result === "superseded") return "contradicts the current RFC";
  return REASONS.find(([pattern]) => pattern.test(id))?.[1];
}

/** @param {Item[]} items @param {string} kind */
function counted(items, kind) {
  const of = items.filter((item) => item.kind === kind);
  /** @param {string} result */
  const count = (result) => of.filter((item) => item.result === result).length;
  return { cases: of.length, passed: count("passed"), failed: count("failed") };
}

/** @param {Record<string, Item[]>} outcomes by adapter */
function adapterRows(outcomes) {
  return Object.entries(outcomes).map(([name, items]) => {
    const cells = ["required", "optimal"].map((kind) => {
      const { cases, passed, failed } = counted(items, kind);
      return `${passed} of ${cases} | ${failed}`;
    });
    return `| ${name} | ${cells.join(" | ")} |`;
  });
}

/** What adapters do not pass although node does, and why. @type {[string, RegExp, string][]} */
const DIFFERENCES = [
  ["http2", /^stale-while-revalidate/, "a request of HTTP/2 cannot be repeated in the background"],
  ["hono", /^interim-/, "a `Response` cannot have interim responses"],
  ["fetch", /^interim-/, "a `Response` cannot have interim responses"],
];

/**
 * What an adapter fails and node passes.
 * @param {Record<string, Item[]>} outcomes
 */
function differing(outcomes) {
  const passed = new Set(
    (outcomes.node ?? []).filter(({ result }) => result === "passed").map(({ id }) => id),
  );
  return Object.entries(outcomes).flatMap(([name, items]) =>
    missedIn(items)
      .filter(({ id }) => passed.has(id))
      .map(({ id, kind, result }) => {
        const why = DIFFERENCES.find(([adapter, pattern]) => adapter === name && pattern.test(id))?.[2];
        return { name, id, kind, result, why };
      }),
  );
}

/** @param {Item[]} items */
const missedIn = (items) => items.filter(({ kind, result }) => kind !== "check" && result !== "passed");

/** @param {string} title @param {Record<string, Item[]>} outcomes by adapter */
function section(title, outcomes) {
  const outcome = outcomes.node ?? [];
  const kinds = ["required", "optimal", "check"].map((kind) => {
    const { cases, passed, failed } = counted(outcome, kind);
    return `| ${kind} | ${cases} | ${passed} | ${failed} | ${cases - passed - failed} |`;
  });
  const groups = [...new Set(outcome.map(({ group }) => group))].map((group) => {
    const items = outcome.filter((item) => item.group === group);
    const cells = ["required", "optimal", "check"].map((kind) => {
      const { cases, passed } = counted(items, kind);
      return cases === 0 ? "" : `${passed} of ${cases}`;
    });
    return `| ${group} | ${cells.join(" | ")} |`;
  });
  const rows = missedIn(outcome).map(
    (item) => `| \`${item.id}\` | ${item.kind} | ${item.result} | ${reasonFor(item) ?? "unexplained"} |`,
  );
  return [
    `## ${title}`,
    "",
    "| kind | cases | passed | failed | does not apply |",
    "|---|---|---|---|---|",
    ...kinds,
    "",
    "On each adapter:",
    "",
    "| adapter | required | failed | optimal | failed |",
    "|---|---|---|---|---|",
    ...adapterRows(outcomes),
    "",
    "Cases that node passes and another does not:",
    "",
    "| case | adapter | kind | result | why |",
    "|---|---|---|---|---|",
    ...differing(outcomes).map(
      ({ id, name, kind, result, why }) =>
        `| \`${id}\` | ${name} | ${kind} | ${result} | ${why ?? "unexplained"} |`,
    ),
    "",
    "Passed by group:",
    "",
    "| group | required | optimal | check |",
    "|---|---|---|---|",
    ...groups,
    "",
    "Required and optimal cases that node does not pass:",
    "",
    "| case | kind | result | why |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

const INTRODUCTION = `# HTTP conformance

\`npm run conformance\` writes this page. It runs the public [HTTP cache tests](https://github.com/http-tests/cache-tests) against a proxy
built from the [middleware](../guide/http.md) on each adapter, with \`ttl: 0\`, \`cacheNonOk\` and \`clientDirectives\`. A case whose setup or dependency
fails does not apply. Cases of the kind \`check\` record what a cache does, without judging it.

The newest cases are in the suite's repository: \`npm run conformance -- --suite <checkout with its dependencies>\`. \`npm test\` runs the release on
npm and fails if a case that has passed before does not pass.
`;

/**
 * Writes the section of this suite and leaves the other one as it is. Returns the cases whose failure has no explanation.
 * @param {string} title
 * @param {boolean} isRepository
 * @param {Record<string, Item[]>} outcomes by adapter
 */
export function writePage(title, isRepository, outcomes) {
  const before = existsSync(PAGE)
    ? readFileSync(PAGE, "utf8")
        .split(/^(?=## )/m)
        .slice(1)
    : [];
  const other = before.find((text) => text.startsWith("## The repository") !== isRepository);
  const own = section(title, outcomes);
  const sections = isRepository ? [own, other] : [other, own];
  const texts = sections.filter((text) => text !== undefined).map((text) => text.trim());
  writeFileSync(PAGE, `${[INTRODUCTION.trim(), ...texts].join("\n\n")}\n`);
  const unexplained = missedIn(outcomes.node ?? []).filter((item) => reasonFor(item) === undefined);
  const different = differing(outcomes).filter(({ why }) => why === undefined);
  return [...unexplained.map(({ id }) => id), ...different.map(({ id, name }) => `${id} on ${name}`)];
}
