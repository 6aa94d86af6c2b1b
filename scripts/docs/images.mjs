// `npm run docs:images`: writes the charts and diagrams of the docs. A test compares the files with its output.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { charts } from "./charts.mjs";
import { diagrams } from "./diagrams.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Every generated image, by its path from the root of the repository. */
export const images = () => ({ ...charts(), ...diagrams() });

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, content] of Object.entries(images())) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), content);
  }
}
