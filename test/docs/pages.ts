// The Markdown pages of the repository, by their paths relative to its root.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");
const FOLDERS = ["docs", "examples", "ops"];

/** Installed packages are left out before they are entered: an example links to the root that it is in. */
const IGNORED = /^(node_modules|\.vitepress|\.next)$/;

function markdownUnder(folder: string): string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return IGNORED.test(entry.name) ? [] : markdownUnder(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

export const readPage = (page: string): string => readFileSync(join(ROOT, page), "utf8");

export const pages: readonly string[] = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...FOLDERS.flatMap(markdownUnder),
];
