// Where test/foreign/install.sh put the clients of other agents.
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = process.env["MORTISE_FOREIGN_DIR"] ?? join(process.env["TMPDIR"] ?? tmpdir(), "mortise-foreign");

/** A file of an installed client; undefined, with a line on stderr, when it is not installed. */
export function installed(client: "pi" | "omp", path: string): string | undefined {
  const file = join(folder, client, "node_modules", path);
  if (existsSync(file)) return file;
  process.stderr.write(`Skipped: the ${client} client is not installed; run "sh test/foreign/install.sh ${client}"\n`);
  return undefined;
}
