#!/usr/bin/env node
// Entry point. Until `ready` is on its way nothing is loaded but the grammar of the arguments; the daemon itself is a later chunk.
import { readFileSync } from "node:fs";
import { parseOptions } from "./options.ts";
import { READY_FRAME } from "./ready.ts";

const argv = process.argv.slice(2);

function version(): string {
  const manifest: { version?: unknown } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return String(manifest.version);
}

async function main(): Promise<void> {
  if (argv[0] === "create-extension") {
    const { createExtension } = await import("./create-extension.ts");
    process.exitCode = await createExtension(argv.slice(1), process.cwd());
    return;
  }
  const parsed = parseOptions(
    argv,
    process.env,
    process.cwd(),
    argv.some((arg) => arg === "--version" || arg === "-v") ? version() : "",
  );
  if ("print" in parsed) {
    process[parsed.to].write(parsed.print);
    process.exitCode = parsed.code;
    return;
  }
  for (const note of parsed.notes) process.stderr.write(`mortise: ${note}\n`);
  process.stdout.write(`${JSON.stringify(READY_FRAME)}\n`);
  const { runProcess } = await import("./process.ts");
  await runProcess(parsed.run);
}

await main();
