// Versions of optional peer packages: any may be installed, and the feature that uses one states which it needs.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, test } from "vitest";
import { MissingPeerError } from "../../src/core/errors.ts";
import { isAbsent, requiredPackage, requirePeerVersion } from "../../src/core/peer-package.ts";
import { installedVersion, isOlder, OLDEST_SUPPORTED } from "../../src/core/peer-versions.ts";

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>;
};

describe("package.json", () => {
  test("accepts every version of every optional package, prereleases included, so that no install can conflict", () => {
    for (const [name, range] of Object.entries(manifest.peerDependencies)) {
      expect(range, name).toBe("*");
      expect(manifest.peerDependenciesMeta[name]?.optional, name).toBe(true);
    }
  });

  test("lists the packages whose oldest supported version is known, and no others", () => {
    expect(Object.keys(manifest.peerDependencies).sort()).toEqual(Object.keys(OLDEST_SUPPORTED).sort());
  });
});

test.each([
  ["5.9.9", "6.0.0", true],
  ["6.0.0", "6.0.0", false],
  ["6.10.0", "6.6.0", false],
  ["10.0.0", "6.6.0", false],
  ["0.27.9", "0.28.0", true],
  ["16.0.0-canary.3", "16.0.0", false],
  ["unknown", "6.0.0", false],
])("%s is older than %s: %s", (version, than, expected) => {
  expect(isOlder(version, than)).toBe(expected);
});

test("the version of an installed package is found even if it does not export its package.json", () => {
  expect(installedVersion("vitest")).toMatch(/^\d+\.\d+\.\d+/);
  expect(installedVersion("no-such-package-anywhere")).toBeUndefined();
});

test("under Plug'n'Play, which has no folders to search, it is found through the package's exports", () => {
  const real = createRequire(import.meta.url);
  const require = Object.assign((name: string) => real(name), {
    ...real,
    resolve: Object.assign((name: string) => real.resolve(name), { paths: () => [] }),
  });
  // It does not export its package.json.
  expect(() => require.resolve("drizzle-orm/package.json")).toThrow();
  for (const name of ["drizzle-orm", "yaml"])
    expect(installedVersion(name, require), name).toBe(installedVersion(name));
  expect(installedVersion("no-such-package-anywhere", require)).toBeUndefined();
});

describe("a package that is too old", () => {
  const thrownBy = (work: () => unknown): unknown => {
    try {
      work();
    } catch (error) {
      return error;
    }
    return undefined;
  };

  test("is rejected with the version found, the version needed and the install command", () => {
    const error = thrownBy(() => requirePeerVersion("nodemailer", "Email alerts", { found: "4.7.0" }));
    expect(error).toBeInstanceOf(MissingPeerError);
    expect(error).toMatchObject({ code: "PEER_VERSION", packageName: "nodemailer", foundVersion: "4.7.0" });
    expect((error as Error).message).toBe(
      'Email alerts needs nodemailer 6.0.0 or later, but 4.7.0 is installed. Run: npm install "nodemailer@>=6.0.0"',
    );
  });

  test("is rejected when it is loaded", () => {
    expect(thrownBy(() => requiredPackage("yaml", "A test", "9999.0.0"))).toMatchObject({
      code: "PEER_VERSION",
      foundVersion: installedVersion("yaml"),
    });
  });

  test("a newer one is accepted, as is one whose version is unknown", () => {
    expect(() => requirePeerVersion("nodemailer", "Email alerts", { found: "99.0.0" })).not.toThrow();
    expect(() => requirePeerVersion("no-such-package-anywhere", "It", { oldest: "1.0.0" })).not.toThrow();
  });
});

describe("an absent package", () => {
  const failure = (message: string, more: object = {}): Error =>
    Object.assign(new Error(message), { code: "MODULE_NOT_FOUND", ...more });

  test("is recognised by what Node says", () => {
    expect(isAbsent(failure("Cannot find module 'some-peer'"), "some-peer")).toBe(true);
    expect(isAbsent(failure("Cannot find module 'what-it-needs'"), "some-peer")).toBe(false);
  });

  test("is recognised by what Yarn Plug'n'Play says, whose messages have no quotes", () => {
    const message =
      "xcache tried to access some-peer (a peer dependency) but it isn't provided by your application";
    const pnp = { pnpCode: "MISSING_PEER_DEPENDENCY", data: { dependencyName: "some-peer" } };
    expect(isAbsent(failure(message, pnp), "some-peer")).toBe(true);
    expect(
      isAbsent(failure(message, { ...pnp, data: { dependencyName: "what-it-needs" } }), "some-peer"),
    ).toBe(false);
  });
});
