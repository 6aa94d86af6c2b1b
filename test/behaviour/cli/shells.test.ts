// Completion in the real shells: typed into a terminal, completed with Tab, run with Enter.
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ensureBinaries } from "../../support/binary.ts";
import { thisMachine } from "../../support/machine.ts";
import { until } from "../../support/until.ts";
import { installedProgram } from "./installed.ts";
import { CommandTerminal } from "./pseudo-terminal.ts";
import { diskUrl, testFolder, withCache } from "./store.ts";

const folder = testFolder();
const kvUrl = diskUrl(folder);
const bin = join(folder, "bin");
const SHELLS = [
  { name: "bash", variable: "XCACHE_TEST_BASH", debianPackage: "bash" },
  { name: "zsh", variable: "XCACHE_TEST_ZSH", debianPackage: "zsh" },
  { name: "fish", variable: "XCACHE_TEST_FISH", debianPackage: "fish" },
] as const;

/** The commands that set up completion in each shell. */
const BEGIN = {
  bash: `eval "$(xcache completion bash)"`,
  zsh: `autoload -Uz compinit; compinit -u -D; eval "$(xcache completion zsh)"`,
  fish: "xcache completion fish | source",
} as const;
const FLAGS = {
  bash: ["--norc", "--noprofile", "-i"],
  zsh: ["-f", "-i"],
  fish: ["--no-config", "-i"],
} as const;

const HOSTILE = `run it's "$(touch ran-1)" \`touch ran-2\`;touch ran-3|touch ran-4>ran-5&*?[a-z]{x,y}~!#\\=@^% ï→キ`;
/** What is typed up to the Tab, and the key that it completes to. */
const KEYS: Readonly<Record<string, string>> = {
  "user:\t": "user:ada",
  "run\t": HOSTILE,
  "par\t\t": "part one:part $(touch ran-6)",
};

beforeAll(async () => {
  mkdirSync(bin);
  writeFileSync(join(bin, "xcache"), `#!/bin/sh\nexec "${process.execPath}" "${installedProgram()}" "$@"\n`);
  chmodSync(join(bin, "xcache"), 0o755);
  await withCache({ kvUrl }, async (cache) => {
    for (const key of Object.values(KEYS))
      await cache.set(key, `VALUE(${key})`, { tags: ["it's $(touch ran-7)"] });
    // Keys that no shell line can contain must not be candidates, or the others would not be unique.
    await cache.setMany({ "user:\nada": 1, "run\u001b": 1, "user:\u202e": 1 }, { tags: ["it\n"] });
  });
});

class Shell extends CommandTerminal {
  constructor(name: keyof typeof BEGIN, path: string, cwd: string) {
    const home = join(cwd, "home");
    mkdirSync(home, { recursive: true });
    const env = { XCACHE_KV_URL: kvUrl, HOME: home, PATH: `${bin}:${process.env.PATH}`, NO_COLOR: "1" };
    super([path, ...FLAGS[name]], { env, cwd, columns: 200 });
  }

  /** Types keys and waits for their effect. */
  async brings(keys: string, what: string): Promise<void> {
    const before = this.output.length;
    this.type(keys);
    await until(() => this.output.slice(before).includes(what), {
      what: `${JSON.stringify(keys)} brings ${what}`,
    }).catch((error: Error) => {
      throw new Error(`${error.message}\n${JSON.stringify(this.output.slice(before))}`);
    });
  }

  /** A shell that is still busy may discard what is typed after Ctrl-C, so it is typed again. */
  async leave(): Promise<void> {
    const type = (): void => this.type("\u0003exit\r");
    const again = setInterval(type, 1_000);
    type();
    await this.ended();
    clearInterval(again);
  }
}

describe.each(SHELLS)("in $name", ({ name }) => {
  const cwd = join(folder, `in-${name}`);
  let shell: Shell;
  beforeAll(async () => {
    mkdirSync(cwd);
    const paths = ensureBinaries(SHELLS, thisMachine);
    shell = new Shell(name, paths[name], cwd);
    await shell.brings(`${BEGIN[name]}; echo re''ady\r`, "ready");
  });
  afterAll(() => shell.leave());

  test("commands, flags and their values are completed", async () => {
    await shell.brings("xcache pi\t --kv-u\t 'file:///nowhere' --help\r", "Usage: xcache ping");
  });

  test.each(Object.entries(KEYS))(
    "%j completes to the key %j, and nothing in it is executed",
    async (typed, key) => {
      await shell.brings(`xcache --timeout 20s get ${typed}\r`, `VALUE(${key})`);
      expect(readdirSync(cwd)).toEqual(["home"]);
    },
  );

  test("tags are completed, quoted", async () => {
    await shell.brings(
      "xcache list --timeout=20s --long --tags it\t --pattern user:ada\r",
      "#it's $(touch ran-7)",
    );
    expect(readdirSync(cwd)).toEqual(["home"]);
  });
});

test("in bash an open quote is kept, and closed after the key", async () => {
  const cwd = join(folder, "in-quotes");
  mkdirSync(cwd);
  const shell = new Shell("bash", ensureBinaries(SHELLS, thisMachine).bash, cwd);
  await shell.brings(`${BEGIN.bash}; echo re''ady\r`, "ready");
  await shell.brings('xcache --timeout 20s get "part one:\t\r', "VALUE(part one:part $(touch ran-6))");
  await shell.brings("xcache --timeout 20s get 'part one:\t\r", "VALUE(part one:part $(touch ran-6))");
  expect(readdirSync(cwd)).toEqual(["home"]);
  shell.type("exit\r");
  await shell.ended();
});
