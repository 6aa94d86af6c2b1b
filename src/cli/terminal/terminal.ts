// What may be done on the streams: colours, and redrawing in place.
import type { Environment } from "../../config/env.ts";

export interface StreamFacts {
  readonly isTTY?: boolean | undefined;
}

/** `--no-color` and NO_COLOR win over FORCE_COLOR, and that over what the stream is. */
export function hasColour(stream: StreamFacts, env: Environment, isAllowed: boolean): boolean {
  if (!isAllowed || isSet(env.NO_COLOR)) return false;
  if (isSet(env.FORCE_COLOR)) return env.FORCE_COLOR !== "0" && env.FORCE_COLOR !== "false";
  return stream.isTTY === true && env.TERM !== "dumb";
}

/** Whether somebody sits in front of it who can be shown something that moves. */
export function isAnimated(stream: StreamFacts, env: Environment): boolean {
  return stream.isTTY === true && env.TERM !== "dumb" && (!isSet(env.CI) || env.CI === "false");
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== "";
