// Positions in PostgreSQL's write-ahead log, as texts like 16/B374D848 and as numbers.

export function lsnOf(text: string): bigint {
  const [high = "0", low = "0"] = text.split("/");
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

export function lsnText(lsn: bigint): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffffffffn).toString(16).toUpperCase()}`;
}

/** The headers that a page of the log, and the first page of a segment, begin with. */
const PAGE_HEADERS = [24n, 40n];

/**
 * The end of the last record, from an insert position: on a page without a record that position is behind the page's
 * header, which a stream reaches only with the next record.
 */
export function endOfRecords(insert: bigint, pageBytes: bigint): bigint {
  const within = insert % pageBytes;
  return PAGE_HEADERS.includes(within) ? insert - within : insert;
}
