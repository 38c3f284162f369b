import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";

test("case 15 D: a kill in the middle of a write leaves the old or the new file, whole", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mortise-kill-"));
  const file = join(folder, "big.txt");
  const old = "o".repeat(20_000_000);
  const program = `
    import { replaceFile } from ${JSON.stringify(join(import.meta.dirname, "../../builtin-tools/_replace.ts"))};
    const content = Buffer.alloc(20_000_000, "n");
    process.stdout.write("ready");
    for (;;) await replaceFile(${JSON.stringify(file)}, content, { shown: "big.txt", signal: new AbortController().signal });
  `;
  const script = join(import.meta.dirname, `_kill-${process.pid}.ts`);
  writeFileSync(script, program);
  try {
    for (let round = 0; round < 4; round++) {
      writeFileSync(file, old);
      chmodSync(file, 0o640);
      const child = spawn(process.execPath, ["--import", "tsx", script], { stdio: ["ignore", "pipe", "inherit"] });
      await once(child.stdout, "data");
      await delay(round * 7);
      child.kill("SIGKILL");
      await once(child, "exit");
      const content = readFileSync(file, "latin1");
      expect(content.length).toBe(20_000_000);
      expect(new Set([content[0], content[10_000_000], content.at(-1)]).size).toBe(1);
      expect(statSync(file).mode & 0o777).toBe(0o640);
      // What is left has a hidden name without the file's ending.
      for (const name of readdirSync(folder)) if (name !== "big.txt") expect(name).toMatch(/^\.[0-9a-f]+\.mortise-tmp$/);
    }
  } finally {
    rmSync(script, { force: true });
    rmSync(folder, { recursive: true, force: true });
  }
});
