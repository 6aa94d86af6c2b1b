// What a call throws, which must be a ConfigError.
import { expect } from "vitest";
import { ConfigError } from "../../src/core/errors.ts";

export function configErrorOf(run: () => unknown): ConfigError {
  let thrown: unknown;
  let returned: unknown;
  try {
    returned = run();
  } catch (error) {
    thrown = error;
  }
  expect(thrown, `nothing was thrown, but ${JSON.stringify(returned)} returned`).toBeInstanceOf(ConfigError);
  return thrown as ConfigError;
}
