// Thirty-two places that all do `{ ...value }`. The engine remembers up to four object shapes per place and copies those
// in one step; at a single place an application with more shapes than that would pay per property instead
// (measured in docs/decisions/0003-payload-codec.md).

/** A shallow copy. Objects of one shape should come with one number, different shapes with different ones. */
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
