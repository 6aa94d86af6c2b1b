// Runs an example to its end, and parses its output.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

export const EXAMPLES = join(import.meta.dirname, "..", "..", "examples");
const DEADLINE_MS = 60_000;

/** The lines it printed. Rejects with its output if it does not end with exit code 0. */
export async function storyOf(name: string, env: NodeJS.ProcessEnv = {}): Promise<readonly string[]> {
  const program = join(EXAMPLES, name, "app.mjs");
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, "--tour"], {
    env: { ...process.env, PORT: "0", XCACHE_KV_URL: "memory://", ...env },
    timeout: DEADLINE_MS,
  });
  if (stderr !== "") throw new Error(stderr);
  return stdout.trimEnd().split("\n");
}

/** The requests of a tour: request, what the cache did, and the answer, without times. */
export function visitsOf(story: readonly string[]): readonly (readonly [string, string, string])[] {
  return story.flatMap((line) => {
    const visit = /^([A-Z]+ \S+) +(\d{3}) +(.*?) +\d+ ms +(.*)$/.exec(line);
    if (visit === null) return [];
    const [, request = "", status = "", did = "", answer = ""] = visit;
    const source = did.startsWith("hit") ? "hit" : did.endsWith("stored") ? "made" : status;
    return [[request, source, answer] as const];
  });
}
