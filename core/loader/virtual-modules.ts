// Modules the host hands in: the authors' door, zod, the names of other hosts. A value that is a function is loaded at the first
// import, so that heavy ones cost nothing until a unit asks for them.

export class VirtualModules {
  readonly #sources: Readonly<Record<string, unknown>>;
  readonly #loaded = new Map<string, unknown>();
  readonly #loading = new Map<string, Promise<unknown>>();

  constructor(sources: Readonly<Record<string, unknown>>) {
    this.#sources = sources;
  }

  has(specifier: string): boolean {
    return Object.hasOwn(this.#sources, specifier);
  }

  async load(specifier: string): Promise<unknown> {
    if (this.#loaded.has(specifier)) return this.#loaded.get(specifier);
    const source = this.#sources[specifier];
    if (typeof source !== "function") return source;
    let loading = this.#loading.get(specifier);
    if (loading === undefined) {
      loading = Promise.resolve(source()).then((namespace: unknown) => {
        this.#loaded.set(specifier, namespace);
        return namespace;
      });
      this.#loading.set(specifier, loading);
      loading.catch(() => this.#loading.delete(specifier));
    }
    return loading;
  }

  /** For a synchronous `require`. @throws {Error} when the module has to be waited for. */
  now(specifier: string): unknown {
    if (this.#loaded.has(specifier)) return this.#loaded.get(specifier);
    const source = this.#sources[specifier];
    if (typeof source !== "function") return source;
    const namespace: unknown = source();
    if (namespace instanceof Promise) {
      namespace.catch(() => {});
      throw new Error(`Cannot require "${specifier}": it is loaded on demand; use import`);
    }
    this.#loaded.set(specifier, namespace);
    return namespace;
  }
}
