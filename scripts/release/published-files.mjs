// README.md and package.json as published. `prepack` puts them in place, `postpack` restores the checkout's:
//   node scripts/release/published-files.mjs begin | end
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FILES = ["README.md", "package.json"];
/** Where the checkout's own files are meanwhile. */
const KEPT = ".cache/pack";

/**
 * The README with links that work from the package page and from node_modules: files outside the package are linked in the
 * repository, at this version.
 * @param {string} text
 * @param {{ repository: { url: string }, version: string, files: readonly string[] }} manifest
 */
export function publishedReadme(text, { repository, version, files }) {
  const address = repository.url.replace(/^git\+/, "").replace(/\.git$/, "");
  /** @param {string} path */
  const absolute = (path) => {
    if (/^(?:[a-z]+:|#)/i.test(path) || files.includes(path.replace(/#.*/, ""))) return path;
    const isPicture = /\.(?:svg|png)$/.test(path);
    return `${address}/${isPicture ? "raw" : "blob"}/v${version}/${path.replace(/^\.\//, "")}`;
  };
  return text
    .replace(/\]\(([^)\s]+)\)/g, (_, path) => `](${absolute(path)})`)
    .replace(/\b(src|href)="([^"]+)"/g, (_, name, path) => `${name}="${absolute(path)}"`);
}

/**
 * Without `prepare`, which is for a checkout: npm warns every user of a package that has one.
 * @param {string} text
 */
export function publishedManifest(text) {
  const { scripts: { prepare: _, ...scripts } = {}, ...manifest } = JSON.parse(text);
  return `${JSON.stringify({ ...manifest, scripts }, undefined, 2)}\n`;
}

/** @param {string} root */
export function begin(root = ROOT) {
  // An earlier run may not have finished.
  end(root);
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  mkdirSync(join(root, KEPT), { recursive: true });
  for (const name of FILES) {
    const text = readFileSync(join(root, name), "utf8");
    writeFileSync(join(root, KEPT, name), text);
    writeFileSync(
      join(root, name),
      name === "README.md" ? publishedReadme(text, manifest) : publishedManifest(text),
    );
  }
}

/** @param {string} root */
export function end(root = ROOT) {
  for (const name of FILES) {
    const kept = join(root, KEPT, name);
    if (existsSync(kept)) renameSync(kept, join(root, name));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [what] = process.argv.slice(2);
  if (what === "begin") begin();
  else if (what === "end") end();
  else throw new Error(`expected "begin" or "end", got ${JSON.stringify(what)}.`);
}
