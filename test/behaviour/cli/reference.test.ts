// docs/reference/cli.md is the real --help. `npx vitest run test/behaviour/cli/reference.test.ts -u` rewrites it.
import { expect, test } from "vitest";
import { EXIT } from "../../../src/cli/exit-code.ts";
import { COMMANDS } from "../../../src/cli/specs/table.ts";
import { sharedProcess } from "./shared-process.ts";

const xcache = sharedProcess();

const PREFACE = `# Command line

What \`--help\` says, command by command; a test keeps this page equal to it. How to use them: [guide](../guide/cli.md).
`;

const section = (title: string, help: string): string =>
  `## ${title}\n\n\`\`\`text\n${help.trimEnd()}\n\`\`\`\n`;

test("docs/reference/cli.md is what --help says", async () => {
  const names = COMMANDS.map(({ name }) => name);
  const sections = [section("xcache", (await xcache(["--help"])).stdout)];
  for (const name of names) sections.push(section(`xcache ${name}`, (await xcache([name, "--help"])).stdout));
  await expect([PREFACE, ...sections].join("\n")).toMatchFileSnapshot("../../../docs/reference/cli.md");
});

test("help lists every exit code", async () => {
  const { stdout } = await xcache(["--help"]);
  const [, codes = ""] = stdout.split("Exit codes:");
  expect(codes.match(/\d+(?= )/g)?.map(Number)).toEqual(Object.values(EXIT));
});
