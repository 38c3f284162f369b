// A command result whose JSON text is ready; goes into the response as it is.
const brand: unique symbol = Symbol.for("mortise.serialized") as never;

export class Serialized {
  readonly [brand] = true;
  readonly json: string;
  constructor(json: string) {
    this.json = json;
  }
  static is(value: unknown): value is Serialized {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
  }
}
