// Reads how the store describes itself and summarizes it.
import type { Session } from "../session.ts";

type Fact = string | number | boolean;

export interface ServerInfo {
  /** Such as `kv` or `disk`. */
  readonly backend: string;
  /** Such as `redis`; null if there is no server. */
  readonly server: string | null;
  readonly version: string | null;
  /** Such as `redis 7.0.15, cluster of 3 masters`. */
  readonly title: string;
  /** Everything it reports. */
  readonly all: Readonly<Record<string, Fact>>;
}

/** Bounded by the operation timeout. */
export async function readServerInfo({ store }: Session): Promise<ServerInfo> {
  const { backend } = store;
  const all = (await backend.describe?.()) ?? {};
  const text = (name: string): string | null => (typeof all[name] === "string" ? all[name] : null);
  const server = text("server") ?? (text("version") === null ? null : text("kind"));
  const version = text("version");
  return { backend: backend.name, server, version, title: title(backend.name, server, version, all), all };
}

function title(
  backend: string,
  server: string | null,
  version: string | null,
  { kind, masters, durability, servers }: Readonly<Record<string, Fact>>,
): string {
  const name = server ?? (backend === "disk" ? "folder on disk" : `${backend} store`);
  const parts = [version === null ? name : `${name} ${version}`];
  if (kind === "cluster") parts.push(`cluster of ${masters} masters`);
  else if (kind === "sentinel") parts.push("found through sentinels");
  else if (typeof servers === "number" && servers > 1) parts.push(`${servers} servers`);
  if (durability !== undefined) parts.push(`durability ${durability}`);
  return parts.join(", ");
}
