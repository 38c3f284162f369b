// A second daemon as far as auth.json is concerned: `node _auth-child.ts <home> <action> [argument]`.
import { writeSync } from "node:fs";
import { AuthFile } from "../../../extensions/models/_auth-file.ts";

const [home = "", action = "", argument = ""] = process.argv.slice(2);
const file = new AuthFile({ home, report: (level, text) => writeSync(2, `${level}: ${text}\n`), otherSecrets: () => [] });

async function renew(): Promise<string> {
  const renewing = file.refresh("service", async (current) => {
    const response = await fetch(argument, { method: "POST", body: JSON.stringify(current) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return (await response.json()) as never;
  });
  writeSync(2, "asked\n");
  return JSON.stringify(await renewing);
}

try {
  if (action === "refresh") writeSync(1, await renew());
  else if (action === "set") {
    await file.set("big", { type: "api_key", key: argument.padEnd(4000, "x") });
    await file.set("second", { type: "api_key", key: "two" });
    await file.remove("second");
    writeSync(1, "stored");
  }
} catch (error) {
  writeSync(1, `failed: ${String(error)}`);
}
