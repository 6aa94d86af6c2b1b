// What a package-lock.json installs at run time, and what it must not contain.

/**
 * @typedef {object} LockedPackage
 * @property {string} [version]
 * @property {string} [resolved]
 * @property {string} [integrity]
 * @property {boolean} [dev]
 * @property {boolean} [inBundle]
 * @property {boolean} [link]
 * @property {boolean} [hasInstallScript]
 * @property {readonly string[]} [libc]
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [optionalDependencies]
 */

/** @typedef {{ readonly lockfileVersion: number, readonly packages: Readonly<Record<string, LockedPackage>> }} LockFile */

/**
 * Where Node finds a package from the location of another: the nearest `node_modules` on the way up.
 * @param {LockFile} lock
 * @param {string} from
 * @param {string} name
 */
function placeOf(lock, from, name) {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    const place = at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`;
    if (lock.packages[place] !== undefined) return place;
    if (at === "") return undefined;
  }
}

/**
 * The packages installed with ours: its dependencies and theirs, by their locations.
 * @param {LockFile} lock
 */
export function runtimePackages(lock) {
  /** @type {Record<string, LockedPackage>} */
  const found = {};
  /** @param {string} from */
  const follow = (from) => {
    const { dependencies, optionalDependencies } = lock.packages[from] ?? {};
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const place = placeOf(lock, from, name);
      if (place === undefined || found[place] !== undefined) continue;
      found[place] = lock.packages[place] ?? {};
      follow(place);
    }
  };
  follow("");
  return found;
}

/**
 * What is wrong with a lock file, one line each; empty when all is well.
 * @param {LockFile} lock
 */
export function lockProblems(lock) {
  const runtime = runtimePackages(lock);
  const missing = Object.keys(lock.packages[""]?.dependencies ?? {}).filter(
    (name) => runtime[`node_modules/${name}`] === undefined,
  );
  // npm ci demands an entry for every platform's package, whatever platform it runs on.
  const absent = Object.entries(lock.packages).flatMap(([place, { optionalDependencies, inBundle }]) =>
    inBundle
      ? []
      : Object.entries(optionalDependencies ?? {}).flatMap(([name, range]) =>
          placeOf(lock, place, name) === undefined ? [`${name}@${range} of ${place}`] : [],
        ),
  );
  const scripted = Object.keys(runtime).filter((place) => runtime[place]?.hasInstallScript);
  const everything = Object.entries(lock.packages).filter(([place]) => place !== "");
  const addressed = everything.filter(([, { resolved, link }]) => resolved !== undefined && !link);
  // A bundled package is part of a package that has a digest.
  const unsealed = everything.filter(
    ([, entry]) => !entry.inBundle && !entry.integrity?.startsWith("sha512-"),
  );
  const libc = everything.filter((entry) => entry[1].libc !== undefined);
  const describe = /** @param {string} problem @param {readonly string[]} places */ (problem, places) =>
    places.map((place) => `${place.replace(/^node_modules\//, "")} ${problem}`);
  return [
    ...describe("is a dependency and not in the lock file", missing),
    ...describe("has no entry: npm ci will refuse the lock file", absent),
    ...describe("runs a script when it is installed", scripted),
    ...describe(
      "is locked to the address of one registry",
      addressed.map(([place]) => place),
    ),
    ...describe(
      "has no SHA-512 digest",
      unsealed.map(([place]) => place),
    ),
    ...describe(
      "names its libc, which npm 10 removes and npm 11 does not miss: delete the field",
      libc.map(([place]) => place),
    ),
  ];
}
