// The Markdown pages of the repository, by their paths relative to its root.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");
const FOLDERS = ["docs", "examples", "ops"];

function markdownUnder(folder: string): string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md") && !/node_modules|\.vitepress|\.next/.test(path))
    .map((path) => join(folder, path));
}

export const readPage = (page: string): string => readFileSync(join(ROOT, page), "utf8");

export const pages: readonly string[] = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...FOLDERS.flatMap(markdownUnder),
];
