// Where a server listens.

export type Endpoint = { readonly host: string; readonly port: number } | { readonly path: string };

/** As one would write it. */
export function nameOf(endpoint: Endpoint): string {
  if ("path" in endpoint) return endpoint.path;
  return `${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
}
