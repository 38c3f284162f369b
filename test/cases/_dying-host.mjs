// A host that starts the daemon with three pipes, sends the lines it was given, and waits to be killed.
// Arguments: the daemon's entry, a JSON list of its arguments, a JSON list of frames. Prints the daemon's pid.
import { spawn } from "node:child_process";

const [entry, args, frames] = process.argv.slice(2);
const daemon = spawn(process.execPath, [entry, ...JSON.parse(args)], { stdio: "pipe" });
let text = "";
daemon.stdout.on("data", (chunk) => {
  text += chunk;
  if (text.includes("tool_execution_start") || text.includes("message_update")) process.stdout.write("streaming\n");
  text = text.slice(-100);
});
daemon.stderr.resume();
process.stdout.write(`${daemon.pid}\n`);
for (const frame of JSON.parse(frames)) daemon.stdin.write(`${JSON.stringify(frame)}\n`);
