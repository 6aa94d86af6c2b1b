// Node built-ins that are slow to load, loaded on first use: an import would load them together with the library.

const getPart = process.getBuiltinModule;

function onFirstUse<Part>(load: () => Part): () => Part {
  let part: Part | undefined;
  return () => {
    part ??= load();
    return part;
  };
}

export const nodeCrypto = onFirstUse(() => getPart("node:crypto"));
export const nodeDgram = onFirstUse(() => getPart("node:dgram"));
export const nodeDns = onFirstUse(() => getPart("node:dns"));
export const nodeFs = onFirstUse(() => getPart("node:fs"));
export const nodeHttp = onFirstUse(() => getPart("node:http"));
export const nodeHttps = onFirstUse(() => getPart("node:https"));
export const nodeNet = onFirstUse(() => getPart("node:net"));
export const nodeTls = onFirstUse(() => getPart("node:tls"));
export const nodeZlib = onFirstUse(() => getPart("node:zlib"));

/** Resolves packages as an import in this library would. */
export const packageRequire = onFirstUse(() => getPart("node:module").createRequire(import.meta.url));

/** Synchronously loads a package that may not be installed. */
export function requirePackage(name: string): unknown {
  return packageRequire()(name);
}
