// A text as bytes in one reused buffer, if it is plain ASCII: most keys are, and need no normalising.

export const ASCII = 128;

/** A bit per kind of ASCII character: one per letter regardless of case, six shared by all others. */
const KIND_BIT = Int32Array.from({ length: ASCII }, (_, unit) => {
  const lower = unit | 0x20;
  const isLetter = lower >= 0x61 && lower <= 0x7a;
  return 1 << (isLetter ? lower - 0x61 : 26 + (unit % 6));
});

/** The position of the bit, 0 to 31. */
export function kindOf(unit: number): number {
  return 31 - Math.clz32(KIND_BIT[unit]!);
}

export class AsciiText {
  bytes = new Uint8Array(1024);
  length = 0;
  /** A bit for each kind of character that occurs. */
  kinds = 0;

  /** false: the text is not plain ASCII, and the fields are meaningless. */
  load(text: string): boolean {
    const length = text.length;
    if (length > this.bytes.length) this.bytes = new Uint8Array(2 * length);
    const bytes = this.bytes;
    let units = 0;
    let kinds = 0;
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      bytes[i] = unit;
      units |= unit;
      kinds |= KIND_BIT[unit & (ASCII - 1)]!;
    }
    this.length = length;
    this.kinds = kinds;
    return units < ASCII;
  }
}
