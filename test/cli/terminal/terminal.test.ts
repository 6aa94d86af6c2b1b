// What a user at a terminal sees: colours, prompts, and nothing that harms the terminal.
import { beforeAll, describe, expect, test } from "vitest";
import { xcache } from "../../behaviour/cli/installed.ts";
import { PseudoTerminal } from "../../behaviour/cli/pseudo-terminal.ts";
import { diskUrl, testFolder, withCache } from "../../behaviour/cli/store.ts";

const folder = testFolder();
const kvUrl = diskUrl(folder);
const env = { XCACHE_KV_URL: kvUrl };
const GREEN = "\u001b[32m";

beforeAll(() =>
  withCache({ kvUrl }, async (cache) => {
    await cache.setMany({ "user:1": { name: "Ada" }, "user:2": 2 }, { ttl: 3 * 86_400, tags: ["users"] });
    await cache.set("bell", "ding \u0007");
  }),
);

async function seen(args: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const terminal = new PseudoTerminal(args, { env: { ...env, ...more } });
  const code = await terminal.ended();
  return { code, output: terminal.output, screen: terminal.screen };
}

describe("a terminal", () => {
  test("gets colours, a header and a count", async () => {
    const { code, output, screen } = await seen(["list", "--long", "--tags", "users"]);
    expect(screen).toEqual([
      "     TTL        SIZE       AGE  KEY  TAGS",
      expect.stringMatching(/^ +(2d 23h|3d) {2} +\d+ B {2} +\S+( \S+)? {2}user:1 {2}#users$/),
      expect.stringMatching(/user:2 {2}#users$/),
      "2 keys",
      "",
    ]);
    expect(output).toContain("\u001b[36m#users\u001b[39m");
    expect(code).toBe(0);
  });

  test("gets JSON in colours", async () => {
    const { output } = await seen(["get", "user:1"]);
    expect(output).toContain(`\u001b[34m"name"\u001b[39m: ${GREEN}"Ada"\u001b[39m`);
  });

  test("gets no colours with --no-color or NO_COLOR, and a pipe gets them with FORCE_COLOR", async () => {
    const [flag, variable, forced] = await Promise.all([
      seen(["ping", "--no-color"]),
      seen(["ping"], { NO_COLOR: "1" }),
      xcache(["ping"], { env: { ...env, FORCE_COLOR: "1" } }),
    ]);
    expect(flag.output).not.toContain("\u001b");
    expect(variable.output).not.toContain("\u001b");
    expect(forced.stdout).toContain(`${GREEN}PONG`);
  });

  test("is not sent raw values with control characters", async () => {
    const { code, output } = await seen(["get", "bell", "--raw"]);
    expect(code).toBe(2);
    expect(output).not.toContain("\u0007");
    expect(output).toContain("Redirect to a file or a pipe");
  });
});

describe("a prompt", () => {
  const keys = (): Promise<string> => xcache(["list"], { env }).then(({ stdout }) => stdout);

  test("shows the count before entries are removed, and a no removes nothing", async () => {
    const terminal = new PseudoTerminal(["invalidate", "--tags", "users"], { env });
    await terminal.shows('Remove 2 entries with the tag "users"? [y/N]');
    terminal.type("n\r");
    expect(await terminal.ended()).toBe(1);
    expect(terminal.screen.join("\n")).toContain("nothing was removed");
    expect(await keys()).toContain("user:1");
  });

  test("answered by Ctrl-C removes nothing and exits with 130", async () => {
    const terminal = new PseudoTerminal(["clear"], { env });
    await terminal.shows("[y/N]");
    terminal.type("\u0003");
    expect(await terminal.ended()).toBe(130);
    expect(await keys()).toContain("user:1");
  });

  test("answered by yes removes the entries", async () => {
    const terminal = new PseudoTerminal(["invalidate", "--tags", "users"], { env });
    await terminal.shows("[y/N]");
    terminal.type("yes\r");
    expect(await terminal.ended()).toBe(0);
    expect(terminal.screen.join("\n")).toContain('removed 2 entries with the tag "users"');
    expect(await keys()).toBe("bell\n");
  });
});
