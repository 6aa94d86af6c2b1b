import { readdirSync, readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { compiledSources } from "./test/support/compiled-sources.ts";

/** What replaces or reloads modules must not meet those of others, and has them from the test runner. */
const REPLACES_MODULES = /\bvi\.(mock|doMock|resetModules)\(/;

/** What replaces timers must not meet what others have left in them; DEBUG turns tracing on for the whole process. */
const REPLACES_PARTS = /\bvi\.useFakeTimers\(|\bstubEnv\("DEBUG"/;

/** To collect all garbage takes long where other files have left much behind. */
const COLLECTS_GARBAGE = /runInNewContext\("gc"\)/;

/** Others import packages that replace Response and Request, which this one compares. */
const NEEDS_OWN_GLOBALS = /web\/invisible-fetch\.test\.ts$/;

const tests = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".test.ts"))
  .map((path) => `test/${path}`);
const replacing = tests.filter((path) => REPLACES_MODULES.test(readFileSync(path, "utf8")));
const alone = tests.filter((path) => {
  const text = readFileSync(path, "utf8");
  const isAlone = NEEDS_OWN_GLOBALS.test(path) || REPLACES_PARTS.test(text) || COLLECTS_GARBAGE.test(text);
  return isAlone && !replacing.includes(path);
});

/** The files that take longest, mostly by waiting: begun last, one of them would keep a run from ending. */
const LONGEST = [
  "simulation/simulation",
  "consistency/consistency",
  "behaviour/web/invisible",
  "dashboard/stores",
  "dashboard/large-values",
  "db/library-features",
  "behaviour/encryption/contract",
  "behaviour/kv/lost-connection",
  "behaviour/memcached/short-ttl",
  "dashboard/browser",
  "behaviour/kv/transfers",
  "backends/kv/cluster/cluster",
  "behaviour/disk/crash",
  "behaviour/memcached/contract-ring",
  "behaviour/cli/servers",
  "docs/pages",
  "behaviour/kv/contract",
  "behaviour/memcached/contract",
  "behaviour/web/clients",
  "backends/kv/sentinel/sentinel",
  "extras/types",
  "behaviour/web/conformance",
  "cli/interrupt",
  "docs/run",
  "behaviour/cli/shells",
  "behaviour/disk/contract",
  "dashboard/states",
  "dashboard/browser-keys",
  "dashboard/proxies",
  "behaviour/ecosystem/next-servers",
  "behaviour/web/twice",
  "behaviour/db/examples",
  "behaviour/cli/frozen",
  "behaviour/kv/lost-writes",
  "behaviour/disk/processes",
  "behaviour/disk/reopened",
  "db/feed/faults",
  "extras/getting-started",
  "behaviour/kv/relay-faults",
  "testing/backend-contract",
].map((name) => `/test/${name}.test.ts`);

const compiled = compiledSources();

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      // A worker that has run one of these is replaced: before it has loaded all of src for the others.
      if (project.name !== "together") return -1;
      const at = LONGEST.findIndex((ending) => moduleId.endsWith(ending));
      return at >= 0 ? at : LONGEST.length;
    };
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/servers.global.ts", "test/support/modules.global.ts"],
    pool: "forks",
    maxWorkers: 4,
    // A sixth of all processor time went into collecting short-lived garbage, mostly on helper threads that the cores have no room for.
    // Warnings of stores that fail are not worth reading here: tests have them fail.
    // Most functions run a few times only per file, so what is inlined into them is mostly compiled in vain.
    execArgv: [
      "--max-semi-space-size=64",
      "--single-threaded-gc",
      "--max-inlined-bytecode-size-cumulative=200",
      "--disable-warning=XCacheWarning",
    ],
    sequence: { sequencer: LongestFirst },
    // Ends what hangs. What must be soon is asserted where it matters, scaled to how busy the machine is.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Nearly every file imports most of src: to do that once for all files of a worker saves a third of the time.
    projects: [
      {
        extends: true,
        ...compiled,
        test: {
          ...compiled.test,
          name: "together",
          include: ["test/**/*.test.ts"],
          exclude: [...alone, ...replacing],
          isolate: false,
          setupFiles: ["test/support/worker.setup.ts"],
        },
      },
      { extends: true, ...compiled, test: { ...compiled.test, name: "alone", include: alone } },
      { extends: true, test: { name: "replacing modules", include: replacing } },
    ],
    // The report is where .ci/run and the Node matrix read their closing figures.
    reporters: process.env.CI ? ["default", "json"] : ["default"],
    outputFile: { json: process.env.XCACHE_TEST_REPORT ?? ".cache/test-report.json" },
  },
});
