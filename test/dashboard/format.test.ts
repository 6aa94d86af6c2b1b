// What the page makes of a text: the search for keys, and the commands it copies.
import { execFileSync } from "node:child_process";
import { describe, expect, it, onTestFinished } from "vitest";
import { tagList } from "../../src/cli/specs/values.ts";
import { dashboard } from "../../src/dashboard/index.ts";
import { XCache } from "../../src/index.ts";

const page = (await import(new URL("../../dashboard/format.mjs", import.meta.url).href)) as {
  searchFor(text: string): object;
  searchOfPrefix(prefix: string): string;
  getCommand(key: string, prefix: string): string;
  invalidateCommand(tag: string, prefix: string): string;
};

describe("the search for keys", () => {
  async function found(search: object, keys: readonly string[]): Promise<unknown> {
    const cache = new XCache({ kvUrl: "memory://" });
    onTestFinished(() => cache.disconnect());
    for (const key of keys) await cache.set(key, 1);
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(search) };
    const answer = await dashboard({ cache, authorize: () => true }).fetch(
      new Request("http://admin.example/api/keys", init),
    );
    const lines = (await answer.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { exact?: { key: string }; entries?: { key: string }[] });
    const all = lines.flatMap(({ exact, entries = [] }) => [...(exact ? [exact] : []), ...entries]);
    return [...new Set(all.map(({ key }) => key))].toSorted();
  }

  it.each([
    ["cart[1]", ["cart1", "cart[1]"]],
    ["really?", ["really!", "really?"]],
    ["a*", ["a*", "ab"]],
    ["[open", ["[open"]],
    ["user:", ["user:1", "user:2"]],
  ])("%s finds the key of that name besides those that match", async (text, expected) => {
    expect(await found(page.searchFor(text), [...expected, "other"])).toEqual(expected);
  });

  it.each(["user:", "cart[1]:", "a*:", "what?:", "back\\slash[:"])(
    "the beginning %s finds the keys that begin so",
    async (prefix) => {
      const search = page.searchFor(page.searchOfPrefix(prefix));
      expect(await found(search, [`${prefix}1`, "cart1:1", "ab:1", "whats:1"])).toEqual([`${prefix}1`]);
    },
  );
});

/** The arguments that a program gets from a shell. */
const wordsOf = (command: string): readonly string[] =>
  execFileSync("sh", ["-c", `printf '%s\\0' ${command}`], { encoding: "utf8" })
    .split("\0")
    .slice(0, -1);

describe("a copied command", () => {
  it.each(["user:1", "--weird", "-h", "it's $HOME", "cart[1]"])("gets the entry %s", (key) => {
    expect(wordsOf(page.getCommand(key, "shop"))).toEqual(["xcache", "get", "--prefix", "shop", "--", key]);
  });

  it.each(["users", "a,b", "[x]", "-x", "it's"])("invalidates the tag %s alone", (tag) => {
    const [, , , tags = "", ...rest] = wordsOf(page.invalidateCommand(tag, "shop"));
    expect(tagList(tags, undefined)).toEqual([tag]);
    expect(rest).toEqual(["--prefix", "shop"]);
  });
});
