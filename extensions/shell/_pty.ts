// A terminal for a command's output. node-pty's own `spawn` is not used: it loses the last output of a command and gives it a
// controlling terminal, at which `sudo` or `ssh` would wait for a person. Only the pair of descriptors comes from it.
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { ReadStream } from "node:tty";
import { z } from "mortise/extension";

/** Wide and tall, so that programs neither wrap nor page. */
const COLUMNS = 200;
const ROWS = 5000;

const Native = z.object({ native: z.object({ open: z.custom<(columns: number, rows: number) => unknown>() }) });
const Pair = z.object({ master: z.number().int(), slave: z.number().int(), pty: z.string() });

export interface Terminal {
  /** Everything written to the terminal. */
  readonly output: ReadStream;
  /** For the child's stdout and stderr. */
  readonly childFd: number;
  /** Its name in the file system. */
  readonly path: string;
  /** The descriptor that leaks into children (node-pty sets no close-on-exec); they close it themselves. */
  readonly masterFd: number;
  /** Call once the child is spawned. */
  spawned(): void;
  /** Writes to the terminal as a child would; the number of bytes it takes now. */
  mark(text: Buffer): number;
  /** Lets go of the child's side; the output ends when no process holds it. */
  release(): void;
}

const NO_TERMINAL = "No terminal: the optional package node-pty is not installed or cannot be loaded; commands run with pipes";

const nodePty = () => Native.parse(createRequire(import.meta.url)("node-pty")).native;

/** Why there are no terminals here; undefined when there are. */
export function terminalFault(): string | undefined {
  try {
    nodePty();
    return undefined;
  } catch {
    return NO_TERMINAL;
  }
}

/** Opens a terminal, or says why there is none. */
export function openTerminal(): Terminal | string {
  let pair: z.infer<typeof Pair>;
  try {
    pair = Pair.parse(nodePty().open(COLUMNS, ROWS));
  } catch {
    return NO_TERMINAL;
  }
  // Opened again by name: the native descriptor is non-blocking, which the child would inherit and lose output by. Only to write:
  // pagers and editors without a controlling terminal ask for keys at stderr, and nobody would ever press one.
  const childFd = openSync(pair.pty, constants.O_WRONLY | constants.O_NOCTTY);
  const markFd = openSync(pair.pty, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
  closeSync(pair.slave);
  const output = new ReadStream(pair.master);
  let childOpen = true;
  let markOpen = true;
  const closeChild = () => {
    if (childOpen) closeSync(childFd);
    childOpen = false;
  };
  return {
    output,
    childFd,
    path: pair.pty,
    masterFd: pair.master,
    spawned: closeChild,
    mark: (text) => {
      try {
        return writeSync(markFd, text);
      } catch {
        // EAGAIN: the terminal is full.
        return 0;
      }
    },
    release: () => {
      closeChild();
      if (markOpen) closeSync(markFd);
      markOpen = false;
    },
  };
}
