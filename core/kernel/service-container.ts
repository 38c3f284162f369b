// Tokens to implementations. An instance lives as long as its definition answers the token; a reloaded owner gives a new one.
import type { Context } from "./context.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import type { ServiceDefinition, Token } from "./services.ts";

export class ServiceContainer {
  readonly #registry: Registry;
  readonly #contextFor: (scope: Scope) => Context;
  readonly #instances = new WeakMap<ServiceDefinition, { instance: unknown }>();
  readonly #creating = new Set<ServiceDefinition>();

  constructor(registry: Registry, contextFor: (scope: Scope) => Context) {
    this.#registry = registry;
    this.#contextFor = contextFor;
  }

  /** @throws {Error} when nothing provides the token. */
  use<T>(token: Token<T>): T {
    const found = this.tryUse(token);
    if (found === undefined) {
      throw new Error(`No extension provides the service "${token.name}": load one that does, or use ctx.tryUse`);
    }
    return found;
  }

  tryUse<T>(token: Token<T>): T | undefined {
    const entry = this.#registry.get("service", token.name);
    if (entry === undefined) return undefined;
    const { definition } = entry;
    let held = this.#instances.get(definition);
    if (held === undefined) {
      if (this.#creating.has(definition)) throw new Error(`Service "${token.name}" needs itself while it is created`);
      this.#creating.add(definition);
      try {
        held = { instance: definition.create(this.#contextFor(entry.scope)) };
      } finally {
        this.#creating.delete(definition);
      }
      this.#instances.set(definition, held);
    }
    return held.instance as T;
  }
}
