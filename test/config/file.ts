// A folder for the YAML files of one test file.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

export function yamlFolder(): { readonly folder: string; file(content: string | Uint8Array): string } {
  const folder = mkdtempSync(join(tmpdir(), "xcache-config-"));
  let count = 0;
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    file(content) {
      count += 1;
      const path = join(folder, `${count}.yaml`);
      writeFileSync(path, content);
      return path;
    },
  };
}
