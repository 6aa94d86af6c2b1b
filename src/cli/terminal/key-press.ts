// Single keys from a terminal, without waiting for a line.

export interface KeyPresses {
  end(): void;
}

/** Calls `pressed` with each key, Ctrl-C included. Does nothing where the input is no terminal. */
export function listenToKeys(stdin: NodeJS.ReadStream, pressed: (key: string) => void): KeyPresses {
  if (stdin.isTTY !== true) return { end: () => {} };
  const heard = (chunk: Buffer | string): void => {
    for (const key of String(chunk)) pressed(key);
  };
  stdin.setRawMode(true);
  stdin.on("data", heard);
  stdin.resume();
  return {
    end: () => {
      stdin.off("data", heard);
      stdin.setRawMode(false);
      stdin.pause();
      stdin.unref();
    },
  };
}
