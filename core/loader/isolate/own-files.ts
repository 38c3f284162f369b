// What an isolated unit may read without asking anybody here: checked as a whole before its process is started.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { UnitSource } from "../discover.ts";

/** The entries of a unit, and for a folder everything in it but its packages. */
export function ownFiles(source: UnitSource): string[] {
  if (source.kind === "file") return [...source.entries];
  return readdirSync(source.id, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.split("/").includes("node_modules"))
    .map((path) => join(source.id, path));
}
