// `npm start`: the demo shows what it promises, and exits cleanly.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const START = join(import.meta.dirname, "../../scripts/build/start.mjs");

test("npm start runs the demo to its end", async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [START], {
    env: { ...process.env, NO_COLOR: "1" },
  });
  expect(stderr).toBe("");
  for (const line of [
    /cache\.set, then cache\.get +Ada/,
    /a Date is a Date, a Set is a Set +true/,
    /the load that began before it is not stored +true/,
    /loads that ran +1$/m,
    /answers, each its own object +1000, 1000 distinct/,
    /health +healthy/,
  ])
    expect(stdout).toMatch(line);
});
