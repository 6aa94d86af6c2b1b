// Keys as bytes and back, exactly: a lone surrogate, which UTF-8 cannot spell, is written as its three bytes (WTF-8).

/** The bytes of a key; a plain string if its UTF-8 is exact. */
export function keyArgument(key: string): string | Buffer {
  return isWellFormed(key) ? key : wtf8(key);
}

/** The key whose `keyArgument` has these bytes. */
export function keyOfBytes(bytes: Buffer): string {
  const text = bytes.toString("utf8");
  // A replacement character may be part of the key or stand for a surrogate.
  return text.includes("\ufffd") ? exactText(bytes) : text;
}

/** In every supported Node, but not in the configured TypeScript library. */
function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;

function wtf8(key: string): Buffer {
  const parts: Buffer[] = [];
  let plainFrom = 0;
  for (let at = 0; at < key.length; at++) {
    const point = key.codePointAt(at) as number;
    if (point > 0xffff) at++;
    else if (isSurrogate(point)) {
      parts.push(Buffer.from(key.slice(plainFrom, at)));
      parts.push(Buffer.from([0xe0 | (point >> 12), 0x80 | ((point >> 6) & 0x3f), 0x80 | (point & 0x3f)]));
      plainFrom = at + 1;
    }
  }
  parts.push(Buffer.from(key.slice(plainFrom)));
  return Buffer.concat(parts);
}

function exactText(bytes: Buffer): string {
  let text = "";
  let plainFrom = 0;
  for (let at = 0; at + 2 < bytes.length; at++) {
    if (bytes[at] !== 0xed || (bytes[at + 1] as number) < 0xa0) continue;
    const unit = 0xd000 | (((bytes[at + 1] as number) & 0x3f) << 6) | ((bytes[at + 2] as number) & 0x3f);
    text += bytes.toString("utf8", plainFrom, at) + String.fromCharCode(unit);
    plainFrom = at + 3;
    at += 2;
  }
  return text + bytes.toString("utf8", plainFrom);
}
