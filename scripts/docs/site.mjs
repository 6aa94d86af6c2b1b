// `npm run docs`: builds the site of docs/, then the API reference of every entry point, both into docs/.vitepress/dist.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The sources of what package.json exports, so that the reference covers exactly what can be imported. */
export function entryPoints() {
  /** @type {{ exports: Record<string, string | { types: string }> }} */
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const built = Object.values(exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.types],
  );
  return built.map((path) => path.replace("./dist/", "src/").replace(/d\.ts$/, "ts"));
}

/** Throws when a link between pages is dead. */
async function buildSite() {
  const { build } = await import("vitepress");
  await build(join(ROOT, "docs"));
}

/** Configured by typedoc.json. Returns whether it was built without a warning. */
async function buildReference() {
  const { Application } = await import("typedoc");
  const base = process.env.DOCS_BASE ?? "/";
  const app = await Application.bootstrapWithPlugins({
    entryPoints: entryPoints(),
    navigationLinks: {
      Guide: `${base}guide/getting-started.html`,
      Benchmarks: `${base}guide/benchmarks.html`,
      Reference: `${base}reference/configuration.html`,
    },
  });
  const project = await app.convert();
  if (project === undefined) return false;
  app.validate(project);
  await app.generateDocs(project, join(ROOT, "docs/.vitepress/dist/api"));
  return !app.logger.hasErrors() && !app.logger.hasWarnings();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.chdir(ROOT);
  await buildSite();
  process.exitCode = (await buildReference()) ? 0 : 1;
}
