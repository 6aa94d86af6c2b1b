// Lets everything else in the process have its turn.
const immediate = setImmediate;

export const nextTurn = (): Promise<undefined> => new Promise((resolve) => immediate(resolve, undefined));
