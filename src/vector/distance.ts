// The four metrics. Internally they compute a nearness, which grows as vectors get closer; callers see a score.

/**
 * - `cosine`: the cosine of the angle, 0 to 1, to six decimals; opposite directions count as 0.
 * - `euclidean`: 1 / (1 + distance), 0 to 1.
 * - `manhattan`: 1 / (1 + sum of the differences), 0 to 1.
 * - `dot`: the dot product itself, which has no bounds.
 */
export type DistanceName = "cosine" | "euclidean" | "dot" | "manhattan";

export interface Distance {
  /** Whether vectors are normalised to length 1 first. */
  readonly normalises: boolean;
  /** Whether scores lie between 0 and 1. */
  readonly isBounded: boolean;
  /** Of `vector` to the one that begins at `offset` in `rows`. */
  nearness(rows: Float32Array, offset: number, vector: Float32Array): number;
  score(nearness: number): number;
  /** A lower bound: nothing less near reaches `score`. */
  leastNearness(score: number): number;
}

/** Scores are rounded, so a nearness this close to the bound must not be ruled out early. */
const SLACK = 1e-6;

export const DISTANCES: Readonly<Record<DistanceName, Distance>> = {
  cosine: {
    normalises: true,
    isBounded: true,
    nearness: dotProduct,
    score: (nearness) => Math.round(1e6 * Math.min(1, Math.max(0, nearness))) / 1e6,
    leastNearness: (score) => (score <= 0 ? Number.NEGATIVE_INFINITY : score - SLACK),
  },
  dot: {
    normalises: false,
    isBounded: false,
    nearness: dotProduct,
    score: (nearness) => nearness,
    leastNearness: (score) => score,
  },
  euclidean: {
    normalises: false,
    isBounded: true,
    nearness: (rows, offset, vector) => -squaredDistance(rows, offset, vector),
    score: (nearness) => 1 / (1 + Math.sqrt(-nearness)),
    leastNearness: (score) => -((distanceFor(score) * (1 + SLACK)) ** 2),
  },
  manhattan: {
    normalises: false,
    isBounded: true,
    nearness: (rows, offset, vector) => -sumOfDifferences(rows, offset, vector),
    score: (nearness) => 1 / (1 - nearness),
    leastNearness: (score) => -distanceFor(score) * (1 + SLACK),
  },
};

export const METRICS = Object.keys(DISTANCES) as readonly DistanceName[];

const distanceFor = (score: number): number => (score <= 0 ? Number.POSITIVE_INFINITY : 1 / score - 1);

// Four accumulators: with one, each addition would wait for the one before.
function dotProduct(rows: Float32Array, offset: number, vector: Float32Array): number {
  const length = vector.length;
  const even = length - (length % 4);
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  for (let i = 0; i < even; i += 4) {
    a += rows[offset + i]! * vector[i]!;
    b += rows[offset + i + 1]! * vector[i + 1]!;
    c += rows[offset + i + 2]! * vector[i + 2]!;
    d += rows[offset + i + 3]! * vector[i + 3]!;
  }
  for (let i = even; i < length; i++) a += rows[offset + i]! * vector[i]!;
  return a + b + c + d;
}

function squaredDistance(rows: Float32Array, offset: number, vector: Float32Array): number {
  const length = vector.length;
  const even = length - (length % 2);
  let a = 0;
  let b = 0;
  for (let i = 0; i < even; i += 2) {
    const first = rows[offset + i]! - vector[i]!;
    const second = rows[offset + i + 1]! - vector[i + 1]!;
    a += first * first;
    b += second * second;
  }
  if (even < length) a += (rows[offset + even]! - vector[even]!) ** 2;
  return a + b;
}

function sumOfDifferences(rows: Float32Array, offset: number, vector: Float32Array): number {
  const length = vector.length;
  const even = length - (length % 2);
  let a = 0;
  let b = 0;
  for (let i = 0; i < even; i += 2) {
    a += Math.abs(rows[offset + i]! - vector[i]!);
    b += Math.abs(rows[offset + i + 1]! - vector[i + 1]!);
  }
  if (even < length) a += Math.abs(rows[offset + even]! - vector[even]!);
  return a + b;
}

/** The vector as this metric compares it: a normalised copy, or itself. */
export function prepare(vector: Float32Array, metric: Distance): Float32Array {
  if (!metric.normalises) return vector;
  const length = lengthOf(vector);
  return vector.map((part) => part / length);
}

/** In double precision, so that the smallest and largest 32-bit floats neither underflow nor overflow. */
export function lengthOf(vector: Float32Array): number {
  let sum = 0;
  for (const part of vector) sum += part * part;
  return Math.sqrt(sum);
}
