// The contract suite needs only describe and it from a test runner.
import { describe as nodeDescribe, it as nodeIt } from "node:test";
import { describe, expect, it } from "vitest";
import { backendContract, type ContractRunner } from "../../../src/testing/index.ts";
import { referenceSubject } from "../../support/reference-subject.ts";

/** What the suite registers, as `group > rule`. */
function registered(options: Parameters<typeof referenceSubject>[1]): string[] {
  const path: string[] = [];
  const names: string[] = [];
  backendContract(referenceSubject("some", options), {
    describe: (name, body) => {
      path.push(name);
      body();
      path.pop();
    },
    it: (name) => names.push([...path, name].join(" > ")),
  });
  return names;
}

describe("the contract suite", () => {
  it("accepts the functions of node:test and vitest as they are", () => {
    const runners: readonly ContractRunner[] = [
      { describe, it },
      { describe: nodeDescribe, it: nodeIt },
    ];
    expect(runners).toHaveLength(2);
  });

  it("registers its cases synchronously, by group and under unique names", () => {
    const names = registered({ push: "at once" });
    expect(names.length).toBeGreaterThan(150);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain("the some backend > swap > a swap from absent writes if the key is absent");
  });

  it("checks what the subject offers, and that it rejects what it does not", () => {
    const [whole, silent, blind] = [{ push: "at once" }, {}, { scan: false }].map((options) =>
      registered(options as Parameters<typeof registered>[0]).map((name) => name.split(" > ").at(-1)),
    );
    const lists = "keys lists the live entries, all or by glob, without the prefix";
    const refuses = "operations that need a list of keys throw UnsupportedError";
    expect(whole).toContain(lists);
    expect(whole).not.toContain(refuses);
    expect(blind).toContain(refuses);
    expect(blind).not.toContain(lists);
    expect(whole).toContain("changes to keys that readMany read are pushed");
    expect(silent).not.toContain("changes to keys that readMany read are pushed");
  });
});
