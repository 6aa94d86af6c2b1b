// What a terminal offers: colours, redrawing in place, and single key presses.
import type { Environment } from "../../config/env.ts";

export interface TerminalStream {
  readonly isTTY?: boolean | undefined;
}

/** `--no-color` and NO_COLOR override FORCE_COLOR, which overrides the detection of a terminal. */
export function hasColour(stream: TerminalStream, env: Environment, isAllowed: boolean): boolean {
  if (!isAllowed || isSet(env.NO_COLOR)) return false;
  if (isSet(env.FORCE_COLOR)) return env.FORCE_COLOR !== "0" && env.FORCE_COLOR !== "false";
  return stream.isTTY === true && env.TERM !== "dumb";
}

/** Whether it is an interactive terminal that can show animations. */
export function isAnimated(stream: TerminalStream, env: Environment): boolean {
  return stream.isTTY === true && env.TERM !== "dumb" && (!isSet(env.CI) || env.CI === "false");
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== "";

export interface KeyPresses {
  end(): void;
}

/** Calls `onKey` with each key, Ctrl-C included. Does nothing if stdin is not a terminal. */
export function listenToKeys(stdin: NodeJS.ReadStream, onKey: (key: string) => void): KeyPresses {
  if (stdin.isTTY !== true) return { end: () => {} };
  const onData = (chunk: Buffer | string): void => {
    for (const key of String(chunk)) onKey(key);
  };
  stdin.setRawMode(true);
  stdin.on("data", onData);
  stdin.resume();
  return {
    end: () => {
      stdin.off("data", onData);
      stdin.setRawMode(false);
      stdin.pause();
      stdin.unref();
    },
  };
}
