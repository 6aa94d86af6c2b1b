// The cluster slot of a key: CRC16 (XMODEM) of its hash tag, or of the whole key, modulo 16384.
//
// The hash tag is the text between the first `{` and the first `}` after it, unless that is empty.

export const SLOTS = 16_384;

const LAST_SLOT = SLOTS - 1;
const OPEN = 0x7b;
const POLYNOMIAL = 0x1021;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL;
  return crc;
});

/** Hashes the same bytes that `keyArgument` sends; allocates nothing. */
export function slotOf(key: string): number {
  let crc = 0;
  for (let at = 0; at < key.length; at++) {
    const unit = key.charCodeAt(at);
    // Braces and everything outside ASCII; nearly every key stays in this loop.
    if (unit >= OPEN) return slotOfAny(key);
    crc = next(crc, unit);
  }
  return crc & LAST_SLOT;
}

function slotOfAny(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  const crc = close > open + 1 ? crc16(0, key, open + 1, close) : crc16(0, key, 0, key.length);
  return crc & LAST_SLOT;
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Those found so far, since every connection of a cluster asks for two of them. */
const tags = new Map<number, string>();

/** Three letters that hash to the slot, as a key or as a hash tag; three are enough to reach every slot. */
export function tagForSlot(slot: number): string {
  const known = tags.get(slot);
  if (known !== undefined) return known;
  const tag = findTag(slot);
  tags.set(slot, tag);
  return tag;
}

function findTag(slot: number): string {
  for (const first of ALPHABET) {
    const afterFirst = crc16(0, first, 0, 1);
    for (const second of ALPHABET) {
      const afterSecond = crc16(afterFirst, second, 0, 1);
      for (const third of ALPHABET) {
        if ((crc16(afterSecond, third, 0, 1) & LAST_SLOT) === slot) return first + second + third;
      }
    }
  }
  throw new RangeError(`a slot must be a whole number from 0 to ${LAST_SLOT}, got ${slot}`);
}

const next = (crc: number, byte: number): number =>
  ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] as number);

/** `from` and `to` must not split a surrogate pair. */
function crc16(start: number, text: string, from: number, to: number): number {
  let crc = start;
  for (let at = from; at < to; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) {
      crc = next(crc, unit);
    } else if (unit < 0x800) {
      crc = next(crc, 0xc0 | (unit >> 6));
      crc = next(crc, 0x80 | (unit & 0x3f));
    } else {
      const point = text.codePointAt(at) as number;
      if (point > 0xffff) {
        at++;
        crc = next(crc, 0xf0 | (point >> 18));
        crc = next(crc, 0x80 | ((point >> 12) & 0x3f));
      } else {
        // Lone surrogates included: see key-bytes.ts.
        crc = next(crc, 0xe0 | (point >> 12));
      }
      crc = next(crc, 0x80 | ((point >> 6) & 0x3f));
      crc = next(crc, 0x80 | (point & 0x3f));
    }
  }
  return crc;
}
