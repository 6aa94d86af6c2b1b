// What the flags that every command takes have said.

export interface GlobalFlags {
  readonly kvUrl?: string;
  readonly config?: string;
  readonly prefix?: string;
  readonly namespace?: readonly string[];
  /** Seconds. */
  readonly timeout?: number;
  readonly json?: boolean;
  /** False after --no-color. */
  readonly color: boolean;
}
