// Files in the folder of an environment by which threads show each other what they are about to do with it.
//
// Every one has a name of its own, so nobody can take another one's away: whoever finds one whose owner has ended
// removes just that. One that has a byte is raised, an empty one is not; neither takes room on a full disk.
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

/** `opening`: raised by threads that open the environment. `changing`: by those that commit to it or close it. */
const KINDS = ["opening", "changing"] as const;
type Kind = (typeof KINDS)[number];

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const MOST_TRIES = 1_000;

/** Whether a path within an environment's folder is that of a marker, or of a folder of them. */
export function isMarkerPath(path: string): boolean {
  const [kind, name, ...more] = path.split(/[/\\]/);
  if (!KINDS.some((known) => known === kind)) return false;
  return name === undefined || (isMarkerName(name) && more.length === 0);
}

/** A raised marker of a thread that lives, as others see it. */
export interface Sign {
  readonly pid: number;
  isUp(): boolean;
}

/** The markers of one kind. Their folder is there only while it is needed: that it is not is quickly seen. */
export class MarkerFolder {
  readonly #path: string;
  readonly #clock: Clock;

  constructor(environment: string, kind: Kind, clock: Clock) {
    this.#path = join(environment, kind);
    this.#clock = clock;
  }

  /** Makes a marker of this thread; it is not raised. */
  add(): Marker {
    return new Marker(join(this.#path, ownMarkerName(this.#clock)));
  }

  /** What is raised, by this thread or others. What was left by threads that have ended is removed. */
  signs(): readonly Sign[] {
    if (statSync(this.#path, { throwIfNoEntry: false }) === undefined) return [];
    const signs = namesIn(this.#path)
      .filter(isMarkerName)
      .map((name) => ({ pid: processIn(name), isUp: () => this.#isUp(name) }))
      .filter((sign) => sign.isUp());
    if (signs.length === 0) removeIfEmpty(this.#path);
    return signs;
  }

  #isUp(name: string): boolean {
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

/** Its folder may be removed just now by somebody who found it empty. */
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
    // Somebody else has removed it, or has a marker there.
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
