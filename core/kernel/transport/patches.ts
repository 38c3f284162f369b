// Replaces members of objects that belong to Node, remembers what stood there, and makes `import { x } from "node:fs"` see it.
import { syncBuiltinESMExports } from "node:module";

export interface Patches {
  /** Puts `value` in the place of `target[name]`. */
  set(target: Record<string, unknown>, name: string, value: unknown): void;
  define(target: object, name: string, descriptor: PropertyDescriptor): void;
  onUndo(undo: () => void): void;
  /** Publishes changed members of built-in modules to their ES module exports. */
  sync(): void;
  /** Puts everything back, last change first. */
  undo(): void;
}

export function patchList(): Patches {
  const undos: (() => void)[] = [];
  return {
    set(target, name, value) {
      const before = Object.getOwnPropertyDescriptor(target, name);
      target[name] = value;
      undos.push(() => {
        if (before === undefined) delete target[name];
        else Object.defineProperty(target, name, before);
      });
    },
    define(target, name, descriptor) {
      const before = Object.getOwnPropertyDescriptor(target, name);
      Object.defineProperty(target, name, descriptor);
      undos.push(() => {
        if (before === undefined) Reflect.deleteProperty(target, name);
        else Object.defineProperty(target, name, before);
      });
    },
    onUndo(undo) {
      undos.push(undo);
    },
    sync: syncBuiltinESMExports,
    undo() {
      for (const undo of undos.splice(0).reverse()) undo();
      syncBuiltinESMExports();
    },
  };
}
