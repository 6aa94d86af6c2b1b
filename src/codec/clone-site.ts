// Thirty-two call sites of `{ ...value }`. V8's inline cache holds up to four object shapes per site and clones those in one
// step; with a single site an application with more shapes would pay per property (measured in
// docs/decisions/0003-payload-codec.md).

/** A shallow copy. Pass the same number for objects of one shape, different numbers for different shapes. */
export function cloneAtSite<T extends object>(site: number, value: T): T {
  switch (site & 31) {
    case 0:
      return { ...value };
    case 1:
      return { ...value };
    case 2:
      return { ...value };
    case 3:
      return { ...value };
    case 4:
      return { ...value };
    case 5:
      return { ...value };
    case 6:
      return { ...value };
    case 7:
      return { ...value };
    case 8:
      return { ...value };
    case 9:
      return { ...value };
    case 10:
      return { ...value };
    case 11:
      return { ...value };
    case 12:
      return { ...value };
    case 13:
      return { ...value };
    case 14:
      return { ...value };
    case 15:
      return { ...value };
    case 16:
      return { ...value };
    case 17:
      return { ...value };
    case 18:
      return { ...value };
    case 19:
      return { ...value };
    case 20:
      return { ...value };
    case 21:
      return { ...value };
    case 22:
      return { ...value };
    case 23:
      return { ...value };
    case 24:
      return { ...value };
    case 25:
      return { ...value };
    case 26:
      return { ...value };
    case 27:
      return { ...value };
    case 28:
      return { ...value };
    case 29:
      return { ...value };
    case 30:
      return { ...value };
    default:
      return { ...value };
  }
}
