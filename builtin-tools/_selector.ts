// The part of a path argument that says which lines: `:N`, `:A-B`, `:A+C`, `:raw`, or `offset` and `limit`.
import { ToolError } from "mortise/extension";

/** Lines count from 1. */
export interface Selection {
  path: string;
  offset: number | undefined;
  limit: number | undefined;
  /** Unchanged text: no conversion of pages or notebooks, control characters as they are. */
  raw: boolean;
}

const selector = /:(?:(raw)|(\d+)(?:([-+])(\d+))?)(?::(raw))?$/;

/** Splits a trailing selector off. The caller has checked that no file has the whole text as its name. */
export function splitSelector(path: string): Selection {
  const match = selector.exec(path);
  const none: Selection = { path, offset: undefined, limit: undefined, raw: false };
  if (match === null || match.index === 0) return none;
  const rest = path.slice(0, match.index);
  // `https://host:8080`: a port.
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/]*$/i.test(rest) && match[1] === undefined) return none;
  const raw = match[1] !== undefined || match[5] !== undefined;
  if (match[2] === undefined) return { path: rest, offset: undefined, limit: undefined, raw };
  const offset = Number(match[2]);
  if (match[4] === undefined) return { path: rest, offset, limit: undefined, raw };
  const second = Number(match[4]);
  const limit = match[3] === "+" ? second : second - offset + 1;
  if (offset < 1 || limit < 1) throw new ToolError(`Cannot read "${path}": lines count from 1 and a range must not be empty`);
  return { path: rest, offset, limit, raw };
}
