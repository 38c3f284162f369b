// Writes what is derived from the definitions: the catalogue of built-ins, schema.json, the client's types and the protocol page.
// `npm run docs` writes; test/docs.test.ts compares.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./root.ts";

/** Generated files by path under the root, as they should be. */
export async function generated(): Promise<Map<string, string>> {
  const { clientTypes, protocolPage, schemaJson } = await import("./protocol-page.ts");
  const files = new Map<string, string>();
  files.set("protocol/generated/schema.json", schemaJson());
  files.set("protocol/generated/commands.ts", clientTypes());
  files.set("docs/protocol.md", protocolPage(readFileSync(join(root, "docs/protocol.md"), "utf8")));
  files.set(
    "docs/extensions.md",
    (await import("./extensions-page.ts")).extensionsPage(readFileSync(join(root, "docs/extensions.md"), "utf8")),
  );
  files.set("docs/tools.md", (await import("./tools-page.ts")).toolsPage(readFileSync(join(root, "docs/tools.md"), "utf8")));
  return files;
}

/** Brings the catalogue in line with the files that are tracked or about to be. */
async function writeCatalogue(): Promise<void> {
  const { renderCatalogue, catalogueUnits } = await import("../core/loader/catalogue.ts");
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "extensions", "builtin-tools"], {
    cwd: root,
    encoding: "utf8",
  });
  writeFileSync(
    join(root, "core/loader/builtins.generated.ts"),
    renderCatalogue(catalogueUnits(listed.split("\n").filter((file) => file !== "" && existsSync(join(root, file))))),
  );
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await writeCatalogue();
  for (const [path, text] of await generated()) writeFileSync(join(root, path), text);
}
