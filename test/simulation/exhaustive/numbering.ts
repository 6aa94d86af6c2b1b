// Numbers things that are equal alike, so that they can be compared and kept as numbers.
export class Numbering<T> {
  readonly #numbers = new Map<string, number>();
  readonly #things: T[] = [];

  /** The number of a thing that is spelled like this. */
  of(spelling: string, thing: () => T): number {
    const known = this.#numbers.get(spelling);
    if (known !== undefined) return known;
    const number = this.#things.length;
    this.#numbers.set(spelling, number);
    this.#things.push(thing());
    return number;
  }

  at(number: number): T {
    return this.#things[number] as T;
  }
}
