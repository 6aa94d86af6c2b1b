// Secrets of any characters, for tests that look for leaks of them.
import fc from "fast-check";

/** No part of a secret may be seen, so every part of it carries this mark. */
export const MARK = "Zq9";

const noise = fc.string({
  unit: fc.oneof(fc.constantFrom(...":/?#@%&=[]\\ \"'\t\n,;<>"), fc.string({ minLength: 1, maxLength: 1 })),
  maxLength: 4,
});

export const secret = fc
  .array(noise, { minLength: 1, maxLength: 5 })
  .map((parts) => `${MARK}${parts.join(MARK)}${MARK}`);
