// Real processes start from one bundled file: tsx would cost each of them 400 ms.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

export interface Bundle {
  readonly file: string;
  readonly folder: string;
  remove(): void;
}

/** Bundles a TypeScript entry beside the tests into a temporary `.mjs`. */
export function bundle(entry: URL): Bundle {
  const folder = mkdtempSync(join(tmpdir(), "mortise-transport-"));
  const source = fileURLToPath(entry);
  const file = join(folder, basename(source).replace(/\.ts$/, ".mjs"));
  buildSync({ entryPoints: [source], bundle: true, platform: "node", format: "esm", target: "node20", outfile: file });
  return { file, folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
