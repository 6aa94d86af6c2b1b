// Marker files in the folder of an environment announce to other threads what a thread is about to do with it.
//
// Every marker has a unique name, so removing one whose owner has ended cannot remove another's. A marker of one byte is
// raised, an empty one is lowered; neither takes space on a full disk.
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import { isMarkerName, ownMarkerName, processIn, trustMs } from "./marker-owner.ts";

/** `opening`: raised by threads that open the environment. `changing`: by threads that commit to it or close it. */
const KINDS = ["opening", "changing"] as const;
type Kind = (typeof KINDS)[number];

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const MOST_TRIES = 1_000;

/** Whether a path within an environment's folder is a marker or a folder of markers. */
export function isMarkerPath(path: string): boolean {
  const [kind, name, ...more] = path.split(/[/\\]/);
  if (!KINDS.some((known) => known === kind)) return false;
  return name === undefined || (isMarkerName(name) && more.length === 0);
}

/** A raised marker of a live thread, as seen by others. */
export interface RaisedMarker {
  readonly pid: number;
  isRaised(): boolean;
}

/** The markers of one kind. Their folder exists only while there are any, so that the usual check is one stat. */
export class MarkerFolder {
  readonly #path: string;
  readonly #clock: Clock;

  constructor(environment: string, kind: Kind, clock: Clock) {
    this.#path = join(environment, kind);
    this.#clock = clock;
  }

  /** Creates a lowered marker of this thread. */
  add(): Marker {
    return new Marker(join(this.#path, ownMarkerName(this.#clock)));
  }

  /** The raised markers of all live threads, this one included. Removes markers whose threads have ended. */
  raised(): readonly RaisedMarker[] {
    if (statSync(this.#path, { throwIfNoEntry: false }) === undefined) return [];
    const raised = namesIn(this.#path)
      .filter(isMarkerName)
      .map((name) => ({ pid: processIn(name), isRaised: () => this.#isRaised(name) }))
      .filter((marker) => marker.isRaised());
    if (raised.length === 0) removeIfEmpty(this.#path);
    return raised;
  }

  #isRaised(name: string): boolean {
    const path = join(this.#path, name);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return false;
    const isRaised = stat.size > 0;
    const trust = trustMs(name);
    const age = (this.#clock.wall?.() ?? this.#clock.now()) - stat.ctimeMs;
    if (trust > 0 && (!isRaised || age < trust)) return isRaised;
    rmSync(path, { force: true });
    return false;
  }
}

export class Marker {
  readonly #path: string;
  readonly #file: number;

  constructor(path: string) {
    this.#path = path;
    this.#file = openNew(path);
  }

  raise(): void {
    ftruncateSync(this.#file, 1);
  }

  lower(): void {
    ftruncateSync(this.#file, 0);
  }

  remove(): void {
    closeSync(this.#file);
    rmSync(this.#path, { force: true });
    removeIfEmpty(dirname(this.#path));
  }
}

/** Retries, as another thread may remove the empty folder at the same time. */
function openNew(path: string): number {
  const folder = dirname(path);
  for (let tries = MOST_TRIES; ; tries--) {
    try {
      makeFolder(folder);
      return openSync(path, "wx", FILE_MODE);
    } catch (error) {
      if (tries === 0 || !hasCode(error, "ENOENT") || !existsSync(dirname(folder))) throw error;
    }
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, FOLDER_MODE);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Another thread has removed it or has a marker in it.
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

const hasCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;
