// Servers of other Debian suites, unpacked with their own libraries into .cache/ and run from there; nothing is installed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const CACHE = fileURLToPath(new URL("../../.cache/servers", import.meta.url));
const MIRROR = "http://deb.debian.org/debian";
/** What Debian calls this processor, the folder of its libraries, and their loader. */
const [ARCHITECTURE, TRIPLET, LOADER] =
  process.arch === "arm64"
    ? ["arm64", "aarch64-linux-gnu", "ld-linux-aarch64.so.1"]
    : ["amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2"];
/** Packages that a server depends on only for its system service. */
const UNNEEDED =
  /^(adduser|debconf.*|cdebconf|init-system-helpers|lsb-base|procps|perl.*|systemd.*|sysvinit.*|dpkg)$/;

/** @typedef {Readonly<Record<string, string>>} Package */

/**
 * A server's program from this Debian suite; downloaded if missing.
 * @param {string} suite such as `trixie`
 * @param {string} name such as `valkey-server`
 */
export async function debianServer(suite, name) {
  const folder = join(CACHE, `${suite}-${name}`);
  const program = join(folder, "server");
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  for (const { Filename: path = "", SHA256: digest } of neededFor(name, await packagesOf(suite))) {
    const archive = join(folder, basename(path));
    const bytes = await download(path);
    if (createHash("sha256").update(bytes).digest("hex") !== digest)
      throw new Error(`${path} is not what the index of ${suite} says.`);
    writeFileSync(archive, bytes);
    run("dpkg-deb", ["-x", archive, folder]);
  }
  const libraries = ["lib", "usr/lib"].map((path) => join(folder, path, TRIPLET));
  const loader = libraries.map((path) => join(path, LOADER)).find((path) => existsSync(path));
  if (loader === undefined) throw new Error(`${suite} has no loader for ${name}.`);
  const command = `exec ${loader} --library-path ${libraries.join(":")} ${join(folder, "usr/bin", name)} "$@"`;
  writeFileSync(program, `#!/bin/sh\n${command}\n`, { mode: 0o755 });
  return program;
}

/** @param {string} path */
async function download(path) {
  const response = await fetch(`${MIRROR}/${path}`);
  if (!response.ok) throw new Error(`${MIRROR}/${path} answered ${response.status}.`);
  return Buffer.from(await response.arrayBuffer());
}

/**
 * @param {string} suite
 * @returns {Promise<ReadonlyMap<string, Package>>}
 */
async function packagesOf(suite) {
  const index = await download(`dists/${suite}/main/binary-${ARCHITECTURE}/Packages.xz`);
  const text = run("xz", ["-dc"], index);
  return new Map(
    text
      .trim()
      .split("\n\n")
      .map((paragraph) => {
        const fields = Object.fromEntries(
          paragraph.split("\n").flatMap((line) => {
            const [, field, value] = /^([\w-]+): (.*)$/.exec(line) ?? [];
            return field === undefined ? [] : [[field, value ?? ""]];
          }),
        );
        return [fields.Package ?? "", fields];
      }),
  );
}

/**
 * A package and all its dependencies.
 * @param {string} name
 * @param {ReadonlyMap<string, Package>} packages
 */
function neededFor(name, packages) {
  /** @type {Set<Package>} */
  const needed = new Set();
  const left = [name];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const found = packages.get(next);
    if (found === undefined || needed.has(found) || UNNEEDED.test(next)) continue;
    needed.add(found);
    for (const choice of `${found.Depends ?? ""},${found["Pre-Depends"] ?? ""}`.split(","))
      left.push(/^\s*([^\s:|(]*)/.exec(choice)?.[1] ?? "");
  }
  return needed;
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Buffer} [input]
 */
function run(command, args, input) {
  const done = spawnSync(command, args, { input, encoding: "utf8", maxBuffer: 2 ** 30 });
  if (done.status !== 0) throw new Error(`${command} failed: ${done.error?.message ?? done.stderr}`);
  return done.stdout;
}
