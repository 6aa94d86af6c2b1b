// Keeps opening an environment apart from committing to it and from closing it, in all processes.
//
// The LMDB inside the binding sets the number of the latest commit, which all processes share, to the one it read a
// moment before when it opens an environment: a commit made in between is undone (OpenLDAP's ITS#9496). And a process
// that closes as the last one destroys the locks under one that opens. So whoever opens shows that first and then waits
// until nobody else is at it; whoever commits or closes shows that first and then looks whether somebody opens. Either
// sees the other, since each shows itself before it looks. Several may open at once: they read the same.
import type { Clock } from "../../../core/clock.ts";
import type { FolderWatch } from "./folder-watch.ts";
import { type Marker, MarkerFolder, type Sign } from "./marker.ts";
import { pause, pauseThread } from "./pause.ts";

/** How often somebody who waits looks again. */
const LOOK_EVERY_MS = 2;
/**
 * How long one who opens keeps others from committing, at first and at most, before they have a turn: somebody who is
 * stopped in a commit is not to stop everybody.
 */
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 400;

/** Opens while nobody commits or closes. Throws what `busy` makes of the processes that would not let it within the limit. */
export async function openApart<T>(
  environment: string,
  { clock, limitMs, busy }: { clock: Clock; limitMs: number; busy: (pids: readonly number[]) => Error },
  open: () => T,
): Promise<T> {
  const due = clock.now() + limitMs;
  const openings = new MarkerFolder(environment, "opening", clock);
  const changes = new MarkerFolder(environment, "changing", clock);
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
    const marker = openings.add();
    let inTheWay: readonly Sign[];
    try {
      marker.raise();
      inTheWay = await whoStays(changes, clock, Math.min(due, clock.now() + waitMs));
      if (inTheWay.length === 0) return open();
    } finally {
      marker.remove();
    }
    if (clock.now() >= due) throw busy([...new Set(inTheWay.map(({ pid }) => pid))]);
    await pause(clock, waitMs);
  }
}

/** Who has been at it from now on until then. One who was seen not to be does not begin while somebody opens. */
async function whoStays(changes: MarkerFolder, clock: Clock, until: number): Promise<readonly Sign[]> {
  let signs = changes.signs();
  while (signs.length > 0 && clock.now() < until) {
    await pause(clock, LOOK_EVERY_MS);
    signs = signs.filter((sign) => sign.isUp());
  }
  return signs;
}

/** The way of one thread to the commits and the end of an environment that it has open. */
export class Gate {
  readonly #openings: MarkerFolder;
  readonly #changes: MarkerFolder;
  readonly #clock: Clock;
  readonly #folder: FolderWatch | undefined;
  #marker: Marker | undefined;

  constructor(environment: string, clock: Clock, folder?: FolderWatch) {
    this.#openings = new MarkerFolder(environment, "opening", clock);
    this.#changes = new MarkerFolder(environment, "changing", clock);
    this.#clock = clock;
    this.#folder = folder;
  }

  /**
   * Whether nobody opens, so that a commit may begin; nobody will then before `leave`. Throws ConnectionError where the
   * folder is not the one that was opened.
   */
  enter(): boolean {
    this.#folder?.requirePresent();
    if (!this.#show()) return true;
    let isFree = false;
    try {
      isFree = this.#openings.signs().length === 0;
    } finally {
      if (!isFree) this.leave();
    }
    return isFree;
  }

  leave(): void {
    try {
      this.#marker?.lower();
    } catch {
      this.remove();
    }
  }

  /** Enters to close; when the time is over in any case, since one who opens and hangs does not come to any harm. */
  async enterToClose(limitMs: number): Promise<void> {
    const due = this.#clock.now() + limitMs;
    while (!this.#canClose(this.#clock.now() >= due)) await pause(this.#clock, LOOK_EVERY_MS);
  }

  /** As `enterToClose`, for a thread that ends: its marker stays as it is, and means nothing when the thread is gone. */
  enterToEnd(): void {
    for (let leftMs = LONGEST_WAIT_MS; !this.#canClose(leftMs <= 0); leftMs -= LOOK_EVERY_MS) {
      pauseThread(LOOK_EVERY_MS);
    }
  }

  /** The environment is closed. */
  remove(): void {
    const marker = this.#marker;
    this.#marker = undefined;
    try {
      marker?.remove();
    } catch {
      // It is found to be nobody's when this thread is gone.
    }
  }

  #canClose(isOverdue: boolean): boolean {
    try {
      if (this.enter()) return true;
      if (isOverdue) this.#show();
      return isOverdue;
    } catch {
      // To stay open would be no better.
      return true;
    }
  }

  /** False where the environment's folder was removed: nobody can open it. */
  #show(): boolean {
    try {
      this.#marker ??= this.#changes.add();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
      throw error;
    }
    this.#marker.raise();
    return true;
  }
}
