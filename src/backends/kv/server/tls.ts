// TLS settings of a connection, from options that name files.
import type { ConnectionOptions } from "node:tls";
import type { TlsOptions } from "../../../core/address/address.ts";
import { ConfigError } from "../../../core/errors.ts";
import { nodeFs } from "../../../core/lazy-builtin.ts";

/**
 * Reads the files again for every connection, so that a renewed certificate needs no restart. The host name is sent as SNI
 * unless it is an IP address (RFC 6066, section 3).
 */
export async function readTls(options: TlsOptions): Promise<ConnectionOptions> {
  const [ca, cert, key] = await Promise.all([
    pem(options.tlsCaFile, "tls_ca_file"),
    pem(options.tlsCertFile, "tls_cert_file"),
    pem(options.tlsKeyFile, "tls_key_file"),
  ]);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(options.tlsServerName === undefined ? {} : { servername: options.tlsServerName }),
    rejectUnauthorized: options.tlsVerify ?? true,
  };
}

async function pem(path: string | undefined, option: string): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await nodeFs().promises.readFile(path);
  } catch (cause) {
    throw new ConfigError("CONFIG_UNREADABLE", `${option} must name a readable PEM file, got ${path}`, {
      cause,
    });
  }
}
