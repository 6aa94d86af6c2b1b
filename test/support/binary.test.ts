// How the test set-up gets its server programs: variable, PATH, apt-get as root, else a command to run.
import { describe, expect, test } from "vitest";
import { ensureBinaries, findBinary, type Machine, TOOLS, type Tool } from "./binary.ts";

const REDIS: Tool = TOOLS[0];
const MEMCACHED: Tool = TOOLS[2];

interface Situation {
  readonly files?: readonly string[];
  readonly env?: Record<string, string>;
  readonly root?: boolean;
  /** Files that appear when packages are installed. */
  readonly installs?: readonly string[];
}

function machineWith({ files = [], env = {}, root = false, installs = [] }: Situation) {
  const present = new Set(files);
  const installed: string[][] = [];
  const said: string[] = [];
  const machine: Machine = {
    env: { PATH: "/usr/local/bin:/usr/bin", ...env },
    pathDelimiter: ":",
    isExecutable: (path) => present.has(path),
    isRoot: () => root,
    installDebianPackages(packages) {
      installed.push([...packages]);
      for (const file of installs) present.add(file);
    },
    say: (line) => said.push(line),
  };
  return { machine, installed, said };
}

const ALL = TOOLS.map((tool) => `/usr/bin/${tool.name}`);

describe("findBinary", () => {
  test("takes the program the variable names before the one on PATH", () => {
    const { machine } = machineWith({
      files: ["/usr/bin/redis-server", "/opt/redis/redis-server"],
      env: { XCACHE_TEST_REDIS_SERVER: "/opt/redis/redis-server" },
    });
    expect(findBinary(REDIS, machine)).toBe("/opt/redis/redis-server");
  });

  test("looks up a bare name in the variable on PATH", () => {
    const { machine } = machineWith({
      files: ["/usr/bin/redis-server", "/usr/bin/valkey-server"],
      env: { XCACHE_TEST_REDIS_SERVER: "valkey-server" },
    });
    expect(findBinary(REDIS, machine)).toBe("/usr/bin/valkey-server");
  });

  test("never falls back to PATH when the variable names nothing that runs", () => {
    for (const named of ["/opt/redis-server", "no-such-server"]) {
      const { machine } = machineWith({ files: ALL, env: { XCACHE_TEST_REDIS_SERVER: named } });
      expect(() => findBinary(REDIS, machine)).toThrow(
        `XCACHE_TEST_REDIS_SERVER should name the redis-server program, but "${named}"`,
      );
    }
  });

  test("searches the system's server folder, even if the user's PATH lacks it", () => {
    const { machine } = machineWith({ files: ["/usr/sbin/memcached"] });
    expect(findBinary(MEMCACHED, machine)).toBe("/usr/sbin/memcached");
  });

  test("takes the first on PATH, and nothing when there is none", () => {
    const { machine } = machineWith({ files: ["/usr/bin/memcached", "/usr/local/bin/memcached"] });
    expect(findBinary(MEMCACHED, machine)).toBe("/usr/local/bin/memcached");
    expect(findBinary(REDIS, machine)).toBeUndefined();
  });
});

describe("ensureBinaries", () => {
  test.each([
    [["/usr/bin/chromium"], "/usr/bin/chromium"],
    [["/usr/bin/chromium", "/usr/bin/chromium-headless-shell"], "/usr/bin/chromium-headless-shell"],
  ])("of %j takes the lighter browser", (files, path) => {
    const browsers = TOOLS.filter(({ name }) => name === "chromium");
    expect(ensureBinaries(browsers, machineWith({ files }).machine)).toEqual({ chromium: path });
  });

  test("installs and prints nothing when all are present", () => {
    const { machine, installed, said } = machineWith({ files: [...ALL, "/usr/bin/apt-get"], root: true });
    expect(Object.values(ensureBinaries(TOOLS, machine))).toEqual(ALL);
    expect([installed, said]).toEqual([[], []]);
  });

  test("as root on a Debian-like system installs exactly the missing packages and reports it", () => {
    const { machine, installed, said } = machineWith({
      files: [
        "/usr/bin/apt-get",
        "/usr/bin/memcached",
        "/usr/bin/openssl",
        "/usr/bin/faketime",
        "/usr/bin/redis-cli",
        "/usr/bin/chromium",
      ],
      root: true,
      installs: ["redis-server", "prometheus", "promtool", "mariadbd"].map((name) => `/usr/bin/${name}`),
    });
    expect(ensureBinaries(TOOLS, machine)["redis-server"]).toBe("/usr/bin/redis-server");
    // One package brings two of them.
    expect(installed).toEqual([["redis-server", "prometheus", "mariadb-server-core"]]);
    expect(said).toEqual([
      "redis-server, prometheus, promtool, mariadbd not found: installing redis-server, prometheus, mariadb-server-core with apt-get",
    ]);
  });

  test("fails when the installed packages lack the program", () => {
    const { machine } = machineWith({ files: ["/usr/bin/apt-get"], root: true });
    expect(() => ensureBinaries(TOOLS, machine)).toThrow("redis-server is not on PATH even though");
  });

  test.each<[string, Situation, string]>([
    [
      "not root on Debian",
      { files: ["/usr/bin/apt-get"] },
      "Run: sudo sh -c 'apt-get update && apt-get install -y redis-server redis-tools memcached openssl faketime prometheus mariadb-server-core chromium-headless-shell'",
    ],
    [
      "a Mac",
      { files: ["/usr/local/bin/brew"] },
      "Run: brew install redis memcached openssl libfaketime prometheus mariadb chromium",
    ],
    [
      "root on Alpine",
      { files: ["/usr/bin/apk"], root: true },
      "Run: apk add redis memcached openssl libfaketime prometheus mariadb chromium",
    ],
    [
      "an unknown system",
      { root: true },
      "install Redis 7 or later, memcached, openssl, faketime, Prometheus, MariaDB and Chromium, or name them in XCACHE_TEST_REDIS_SERVER",
    ],
  ])("on %s stops with what to do and installs nothing", (_, situation, advice) => {
    const { machine, installed } = machineWith(situation);
    expect(() => ensureBinaries(TOOLS, machine)).toThrow(advice);
    expect(installed).toEqual([]);
  });
});
