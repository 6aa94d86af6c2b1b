// The suite asks no more of a test runner than that it can describe and run.
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
  it("takes the functions of node:test and of vitest as they are", () => {
    const runners: readonly ContractRunner[] = [
      { describe, it },
      { describe: nodeDescribe, it: nodeIt },
    ];
    expect(runners).toHaveLength(2);
  });

  it("registers its cases at once, by group and each under a name of its own", () => {
    const names = registered({ push: "at once" });
    expect(names.length).toBeGreaterThan(150);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain("the some backend > swap > a swap from nothing writes where nothing is");
  });

  it("asks for what the subject offers: a refusal takes the place of what it does not", () => {
    const [whole, silent, blind] = [{ push: "at once" }, {}, { scan: false }].map((options) =>
      registered(options as Parameters<typeof registered>[0]).map((name) => name.split(" > ").at(-1)),
    );
    const lists = "keys lists the live entries, whole or by glob, without prefix";
    const refuses = "what needs a list of keys says that this store has none";
    expect(whole).toContain(lists);
    expect(whole).not.toContain(refuses);
    expect(blind).toContain(refuses);
    expect(blind).not.toContain(lists);
    expect(whole).toContain("readMany is a read: its keys are told of");
    expect(silent).not.toContain("readMany is a read: its keys are told of");
  });
});
