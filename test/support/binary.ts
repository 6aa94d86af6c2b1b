// Finds the programs the tests need; installs missing ones where that is safe, else prints the exact command.

/** A program the tests start, the variable that may name it, and the Debian package that brings it. */
export interface Tool {
  readonly name: string;
  readonly variable: string;
  readonly debianPackage: string;
  /** A program that does the same for less, and is looked for first. */
  readonly lighter?: string;
}

export const TOOLS = [
  { name: "redis-server", variable: "XCACHE_TEST_REDIS_SERVER", debianPackage: "redis-server" },
  { name: "redis-cli", variable: "XCACHE_TEST_REDIS_CLI", debianPackage: "redis-tools" },
  { name: "memcached", variable: "XCACHE_TEST_MEMCACHED", debianPackage: "memcached" },
  { name: "openssl", variable: "XCACHE_TEST_OPENSSL", debianPackage: "openssl" },
  { name: "faketime", variable: "XCACHE_TEST_FAKETIME", debianPackage: "faketime" },
  { name: "prometheus", variable: "XCACHE_TEST_PROMETHEUS", debianPackage: "prometheus" },
  { name: "promtool", variable: "XCACHE_TEST_PROMTOOL", debianPackage: "prometheus" },
  { name: "mariadbd", variable: "XCACHE_TEST_MARIADBD", debianPackage: "mariadb-server-core" },
  {
    name: "chromium",
    variable: "XCACHE_TEST_CHROMIUM",
    debianPackage: "chromium-headless-shell",
    lighter: "chromium-headless-shell",
  },
] as const satisfies readonly Tool[];

export type ToolName = (typeof TOOLS)[number]["name"];

/** What is needed from the machine; tests pass a fake. */
export interface Machine {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Separates the folders of PATH. */
  readonly pathDelimiter: string;
  isExecutable(path: string): boolean;
  isRoot(): boolean;
  /** Installs Debian packages without starting their services; throws when that fails. */
  installDebianPackages(packages: readonly string[]): void;
  say(line: string): void;
}

/** Package managers in the order they are looked for, with the command a person would run. */
const PACKAGE_MANAGERS = [
  { program: "apt-get", command: (packages: string) => `apt-get update && apt-get install -y ${packages}` },
  {
    program: "brew",
    command: () => "brew install redis memcached openssl libfaketime prometheus mariadb chromium",
  },
  {
    program: "dnf",
    command: () =>
      "dnf install -y redis memcached openssl libfaketime golang-github-prometheus mariadb-server chromium",
  },
  {
    program: "apk",
    command: () => "apk add redis memcached openssl libfaketime prometheus mariadb chromium",
  },
] as const;

/** The path of a program, or undefined. A variable that names something else than a program is an error. */
export function findBinary(tool: Tool, machine: Machine): string | undefined {
  const named = machine.env[tool.variable];
  if (named === undefined || named === "")
    return (
      (tool.lighter === undefined ? undefined : findOnPath(tool.lighter, machine)) ??
      findOnPath(tool.name, machine)
    );
  const found = named.includes("/") ? named : findOnPath(named, machine);
  if (found !== undefined && machine.isExecutable(found)) return found;
  throw new Error(
    `${tool.variable} should name the ${tool.name} program, but "${named}" is not an executable file. ` +
      "Correct the variable, or unset it to search PATH.",
  );
}

/** Where Debian has servers; the PATH of its users ends before. */
const SERVERS = "/usr/sbin";

function findOnPath(name: string, machine: Machine): string | undefined {
  return [...(machine.env.PATH ?? "").split(machine.pathDelimiter), SERVERS]
    .filter((folder) => folder !== "")
    .map((folder) => `${folder}/${name}`)
    .find((path) => machine.isExecutable(path));
}

/** Every tool's path. Installs the missing ones as root on a Debian-like system; anywhere else it throws. */
export function ensureBinaries<const T extends readonly Tool[]>(
  tools: T,
  machine: Machine,
): Record<T[number]["name"], string> {
  const missing = tools.filter((tool) => findBinary(tool, machine) === undefined);
  if (missing.length > 0) installMissing(missing, machine);
  const paths = tools.map((tool) => {
    const path = findBinary(tool, machine);
    if (path === undefined)
      throw new Error(`${tool.name} is not on PATH even though its package was installed.`);
    return [tool.name, path] as const;
  });
  return Object.fromEntries(paths) as Record<T[number]["name"], string>;
}

const packagesOf = (tools: readonly Tool[]): string[] => [
  ...new Set(tools.map((tool) => tool.debianPackage)),
];

function installMissing(missing: readonly Tool[], machine: Machine): void {
  const names = missing.map((tool) => tool.name).join(", ");
  const packages = packagesOf(missing);
  const debianLike = findOnPath("apt-get", machine) !== undefined;
  if (!debianLike || !machine.isRoot()) throw new Error(`${names} not found. ${adviceFor(missing, machine)}`);
  machine.say(`${names} not found: installing ${packages.join(", ")} with apt-get`);
  machine.installDebianPackages(packages);
}

function adviceFor(missing: readonly Tool[], machine: Machine): string {
  const variables = missing.map((tool) => tool.variable).join(", ");
  const manager = PACKAGE_MANAGERS.find(({ program }) => findOnPath(program, machine) !== undefined);
  if (manager === undefined) {
    return `The tests need real servers: install Redis 7 or later, memcached, openssl, faketime, Prometheus, MariaDB and Chromium, or name them in ${variables}.`;
  }
  const command = manager.command(packagesOf(missing).join(" "));
  const elevate = manager.program !== "brew" && !machine.isRoot();
  const runnable = elevate ? `sudo sh -c '${command}'` : command;
  return `The tests need real servers. Run: ${runnable}\nOr name installed programs in ${variables}.`;
}
