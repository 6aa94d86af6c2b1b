// `npm run sbom [-- file]`: the bill of materials of what is published, as CycloneDX. Default: standard output.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { npmEnvironment } from "./npm-environment.mjs";
import { inPublishedFolder } from "./published-folder.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FORMAT = ["--omit=dev", "--sbom-format=cyclonedx", "--sbom-type=library", "--package-lock-only"];

export function billOfMaterials(root = ROOT) {
  return inPublishedFolder(root, (cwd) =>
    execFileSync("npm", ["sbom", ...FORMAT, "--loglevel=error"], {
      cwd,
      encoding: "utf8",
      env: npmEnvironment(),
    }),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , file] = process.argv;
  if (file === undefined) process.stdout.write(billOfMaterials());
  else writeFileSync(file, billOfMaterials());
}
