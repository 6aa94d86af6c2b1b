// The package as its users get it: manifest and lock file without anything that is for development only.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runtimePackages } from "./lock-file.mjs";

const NOT_PUBLISHED = ["devDependencies", "overrides", "peerDependencies", "peerDependenciesMeta", "scripts"];

/** @param {Record<string, unknown>} manifest */
const published = (manifest) =>
  Object.fromEntries(Object.entries(manifest).filter(([field]) => !NOT_PUBLISHED.includes(field)));

/**
 * Runs npm on it in a temporary folder. In the checkout `--omit=dev` would also list what a development dependency
 * bundles, and call the package by the name of the folder.
 * @template T
 * @param {string} root
 * @param {(folder: string) => T} look
 * @returns {T}
 */
export function inPublishedFolder(root, look) {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const packages = { "": published(lock.packages[""]), ...runtimePackages(lock) };
  const place = mkdtempSync(join(tmpdir(), "xcache-published-"));
  try {
    const folder = join(place, manifest.name);
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), JSON.stringify(published(manifest)));
    writeFileSync(join(folder, "package-lock.json"), JSON.stringify({ ...lock, packages }));
    return look(folder);
  } finally {
    rmSync(place, { recursive: true });
  }
}
