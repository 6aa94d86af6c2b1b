// The six ways to compare a metric with a threshold.

const COMPARISONS = {
  less_than: { words: "less than", holds: (value: number, threshold: number) => value < threshold },
  greater_than: { words: "greater than", holds: (value: number, threshold: number) => value > threshold },
  less_or_equal: { words: "at most", holds: (value: number, threshold: number) => value <= threshold },
  greater_or_equal: { words: "at least", holds: (value: number, threshold: number) => value >= threshold },
  equal: { words: "equal to", holds: (value: number, threshold: number) => value === threshold },
  not_equal: { words: "not equal to", holds: (value: number, threshold: number) => value !== threshold },
} as const;

/** How an alert compares its metric with its threshold. */
export type AlertComparison = keyof typeof COMPARISONS;

export const COMPARISON_IDS = Object.keys(COMPARISONS) as readonly AlertComparison[];

export const compares = (value: number, comparison: AlertComparison, threshold: number): boolean =>
  COMPARISONS[comparison].holds(value, threshold);

/** As in "0.62 is less than 0.7". */
export const wordsOf = (comparison: AlertComparison): string => COMPARISONS[comparison].words;
