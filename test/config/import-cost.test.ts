import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { configFromYaml } from "../../src/config/yaml.ts";
import { yamlFolder } from "./file.ts";

const { file } = yamlFolder();
const { cache } = createRequire(import.meta.url);
const parserLoaded = (): boolean =>
  Object.keys(cache).some((name) => /[\\/]node_modules[\\/]yaml[\\/]/.test(name));

it("the YAML parser is loaded only when a file is read", () => {
  expect(parserLoaded()).toBe(false);
  configFromYaml(file("pool_size: 2"));
  expect(parserLoaded()).toBe(true);
});
