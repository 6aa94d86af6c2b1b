// What a server reports about itself by `stats` and `stats settings`.

export type Statistics = ReadonlyMap<string, string>;

export interface ServerInfo {
  readonly version: string;
  /** The largest record that is sure to fit into an item. */
  readonly largestRecord: number;
  /** Whether compare-and-swap works; a server may be started without. */
  readonly hasCas: boolean;
  /** Whether it evicts old items when it is full, instead of refusing new ones. */
  readonly evicts: boolean;
}

const DEFAULT_ITEM_SIZE = 1024 * 1024;
/** Key, header, CAS and line end of an item, all counted by the server. */
const ITEM_OVERHEAD = 320;
/** Earlier ones compare every `md` with CAS 0, so that nothing is removed, and report a wrong CAS of stored items. */
const LEAST_VERSION: readonly number[] = [1, 6, 13];

export const NO_INFO: ServerInfo = {
  version: "unknown",
  largestRecord: DEFAULT_ITEM_SIZE - ITEM_OVERHEAD,
  hasCas: true,
  evicts: true,
};

export function readServerInfo(general: Statistics, settings: Statistics): ServerInfo {
  const itemSize = Number(settings.get("item_size_max"));
  return {
    version: general.get("version") ?? NO_INFO.version,
    largestRecord: (itemSize > ITEM_OVERHEAD ? itemSize : DEFAULT_ITEM_SIZE) - ITEM_OVERHEAD,
    hasCas: settings.get("cas_enabled") !== "no",
    evicts: settings.get("evictions") !== "off",
  };
}

/** Whether a version supports what is needed; one that is not a number is given the benefit of the doubt. */
export function isRecent(version: string): boolean {
  const parts = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number) ?? LEAST_VERSION;
  for (const [at, least] of LEAST_VERSION.entries()) {
    const part = parts[at] as number;
    if (part !== least) return part > least;
  }
  return true;
}
