// Writes ops/: `node scripts/ops/ops.mjs [--namespace shop] [--out folder]`, from the catalogue of metrics.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildIfStale } from "../build/build.mjs";
import { dashboardFile } from "./dashboard.mjs";
import { rulesFile } from "./rules.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Each file by its path in ops/.
 * @param {import("./rules.mjs").Catalogue} catalogue
 * @returns {Record<string, string>}
 */
export function opsFiles(catalogue, namespace = "xcache") {
  return {
    "grafana/xcache.json": dashboardFile(catalogue, namespace),
    "prometheus/xcache.rules.yml": rulesFile(catalogue, namespace),
  };
}

async function main() {
  const { values } = parseArgs({
    options: { namespace: { type: "string", default: "xcache" }, out: { type: "string" } },
  });
  const status = buildIfStale();
  if (status !== 0) return status;
  const compiled = new URL("../../.cache/modules/metrics/catalogue.js", import.meta.url).href;
  const { CATALOGUE } = await import(compiled);
  for (const [path, text] of Object.entries(opsFiles(CATALOGUE, values.namespace))) {
    const file = join(values.out ?? join(ROOT, "ops"), path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(file);
  }
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main();
