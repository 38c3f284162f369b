// Watches a directory and tells the mode of each file in it as soon as the kernel names it.
// Argument: the directory. Prints "ready", then a line of JSON for each thing seen: name, mode of the file, mode of the directory.
import { lstatSync, watch } from "node:fs";
import { join } from "node:path";

const [directory] = process.argv.slice(2);
watch(directory, (_event, name) => {
  const file = name === null ? undefined : lstatSync(join(directory, name), { throwIfNoEntry: false });
  if (!file?.isFile()) return;
  const modes = [file.mode & 0o777, lstatSync(directory).mode & 0o777];
  process.stdout.write(`${JSON.stringify([name, ...modes])}\n`);
});
process.stdout.write("ready\n");
