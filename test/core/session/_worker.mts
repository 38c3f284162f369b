// Obeys one JSON command per line: open, append, name, close. Answers with one JSON object per line.
import { createInterface } from "node:readline";
import { SessionLog } from "../../../core/session/log.ts";

let log: SessionLog | undefined;

async function obey(command: Record<string, unknown>): Promise<Record<string, unknown>> {
  if (command["do"] === "open") {
    ({ log } = await SessionLog.open(String(command["file"])));
    return { entries: log.entries.length };
  }
  if (command["do"] === "create") {
    log = SessionLog.create({ cwd: "/project", sessionsDir: String(command["sessionsDir"]) });
    log.append({ type: "message", message: { role: "user", content: "start", timestamp: 1 } });
    log.materialize();
    return { file: log.file };
  }
  if (log === undefined) return { error: "No log" };
  if (command["do"] === "append") {
    let id = "";
    for (let i = 0; i < Number(command["count"] ?? 1); i++) {
      id = log.append({ type: "message", message: { role: "user", content: String(command["text"]), timestamp: 1 } }).id;
    }
    return { id };
  }
  if (command["do"] === "name") return { named: log.setName(String(command["name"]), "user") };
  log.close();
  return {};
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await obey(JSON.parse(line)).catch((error) => ({
    error: error.message,
    pid: error.pid,
    name: error.name,
    pidOfSelf: process.pid,
  }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
