// A copy of the checkout with the built daemon in it: for tests that write into its own extensions/, which every other daemon that
// runs from the checkout would load as well.
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BIN, ROOT } from "./process.ts";

export interface Checkout {
  readonly path: string;
  /** How the daemon in it is started. */
  readonly command: readonly [string, ...string[]];
  remove(): void;
}

export function copyCheckout(): Checkout {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "mortise-checkout-")));
  cpSync(dirname(BIN), join(path, "dist"), { recursive: true });
  for (const name of ["extensions", "builtin-tools", "package.json"])
    cpSync(join(ROOT, name), join(path, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(path, "node_modules"));
  return {
    path,
    command: [process.execPath, join(path, "dist/main.js")],
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}
