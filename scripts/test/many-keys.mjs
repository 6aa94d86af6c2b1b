// `npm run test:keys`, or `npm run test:keys -- 200000`: the dashboard's list of keys over a million entries.
import { spawnSync } from "node:child_process";

const [keys = "1000000"] = process.argv.slice(2);
if (!/^[1-9]\d*$/.test(keys))
  throw new Error(`the number of keys must be a whole number above 0, got ${keys}.`);
const { status } = spawnSync(
  "npx",
  ["vitest", "run", "test/dashboard/many-keys.test.ts", "test/dashboard/browser-keys.test.ts"],
  {
    stdio: "inherit",
    env: { ...process.env, XCACHE_TEST_KEYS: keys },
  },
);
process.exitCode = status ?? 1;
