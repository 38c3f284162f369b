// Exports that exist so that imports link, and say so when they are used.

/** A value that can be called, constructed and read; only using it fails, with its name. */
export function unavailable(name: string): unknown {
  const refuse = (): never => {
    throw new Error(`${name} is not available in mortise`);
  };
  return new Proxy(class {}, {
    apply: refuse,
    construct: refuse,
    get: (target, key) => {
      if (typeof key !== "string" || key === "then") return Reflect.get(target, key);
      if (key === "prototype" || key === "length" || key === "name") return Reflect.get(target, key);
      return () => unavailable(`${name}.${key}`);
    },
  });
}

export function unavailableOnes(names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, unavailable(name)]));
}
