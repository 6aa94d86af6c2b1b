// Node built-ins that are slow to load, loaded on first use: an import would load them together with the library. It would also
// make a module of each and list all its exports, which takes time even for those that Node itself has loaded.

const getPart = process.getBuiltinModule;

/** Also for tables that take longer to make than most programs have use for them. */
export function onFirstUse<Part>(load: () => Part): () => Part {
  let part: Part | undefined;
  return () => {
    part ??= load();
    return part;
  };
}

/** Node itself has loaded these. */
export const { AsyncLocalStorage, AsyncResource } = getPart("node:async_hooks");
export const { tracingChannel } = getPart("node:diagnostics_channel");
export const { EventEmitter } = getPart("node:events");
export const types = getPart("node:util/types");

export const nodeCrypto = onFirstUse(() => getPart("node:crypto"));
export const nodeDgram = onFirstUse(() => getPart("node:dgram"));
export const nodeDns = onFirstUse(() => getPart("node:dns"));
export const nodeEvents = onFirstUse(() => getPart("node:events"));
export const nodeFs = onFirstUse(() => getPart("node:fs"));
export const nodeHttp = onFirstUse(() => getPart("node:http"));
export const nodeHttps = onFirstUse(() => getPart("node:https"));
export const nodeNet = onFirstUse(() => getPart("node:net"));
export const nodeOs = onFirstUse(() => getPart("node:os"));
export const nodePath = onFirstUse(() => getPart("node:path"));
export const nodeTls = onFirstUse(() => getPart("node:tls"));
export const nodeUrl = onFirstUse(() => getPart("node:url"));
export const nodeZlib = onFirstUse(() => getPart("node:zlib"));

/** Resolves packages as an import in this library would. */
export const packageRequire = onFirstUse(() => getPart("node:module").createRequire(ownPlace()));

/** In a bundle of CommonJS, which has no address of its own, the bundle, or else a file of the working directory. */
function ownPlace(): string {
  const address: string | undefined = import.meta.url;
  if (address !== undefined) return address;
  return typeof __filename === "string" ? __filename : nodePath().resolve("package.json");
}

/** Synchronously loads a package that may not be installed. */
export function requirePackage(name: string): unknown {
  return packageRequire()(name);
}

/**
 * A regular expression with classes of Unicode such as `\p{L}`: V8 checks a literal when it parses the file, used or not, and
 * collects the characters of the class for that.
 */
export const unicodePattern = (source: string, flags = "u"): (() => RegExp) =>
  onFirstUse(() => new RegExp(source, flags));
