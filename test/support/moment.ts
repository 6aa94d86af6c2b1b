// Something that a test lets happen once.
export interface Moment {
  readonly come: Promise<void>;
  let(): void;
}

export function moment(): Moment {
  let happen = (): void => {};
  const come = new Promise<void>((resolve) => {
    happen = resolve;
  });
  return { come, let: () => happen() };
}
