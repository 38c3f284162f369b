// The part of a path argument that says which lines: `:N`, `:N-`, `:A-B`, `:A+C`, several with commas, `:raw`.
import { ToolError } from "mortise/extension";

/** Lines count from 1; without a limit to the end. */
export interface LineRange {
  offset: number;
  limit: number | undefined;
}

export interface Selection {
  path: string;
  /** Empty means from the beginning. */
  ranges: readonly LineRange[];
  /** Unchanged text: no conversion of pages or notebooks, control characters as they are. */
  raw: boolean;
}

/** More places than this in one call are a mistake, and each one reads the file once. */
const MAX_RANGES = 20;
const range = /\d+(?:-\d*|\+\d+)?/.source;
const selector = new RegExp(`:(?:(raw)|(${range}(?:,${range})*))(?::(raw))?$`);

/** Splits a trailing selector off. The caller has checked that no file has the whole text as its name. */
export function splitSelector(path: string): Selection {
  const match = selector.exec(path);
  const none: Selection = { path, ranges: [], raw: false };
  if (match === null || match.index === 0) return none;
  const rest = path.slice(0, match.index);
  const [, raw, list, rawToo] = match;
  // `https://host:8080`: a port.
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/]*$/i.test(rest) && list !== undefined && /^https?:/i.test(rest)) return none;
  const ranges = list === undefined ? [] : list.split(",").map((text) => parseRange(path, text));
  if (ranges.length > MAX_RANGES) throw new ToolError(`Cannot read "${path}": at most ${MAX_RANGES} ranges are possible`);
  return { path: rest, ranges, raw: raw !== undefined || rawToo !== undefined };
}

function parseRange(path: string, text: string): LineRange {
  const [, first, sign, second] = /^(\d+)(?:([-+])(\d+)|-)?$/.exec(text) ?? [];
  const offset = Number(first);
  const limit = second === undefined ? undefined : sign === "+" ? Number(second) : Number(second) - offset + 1;
  if (offset < 1 || (limit !== undefined && limit < 1)) {
    throw new ToolError(`Cannot read "${path}": lines count from 1 and a range must not be empty`);
  }
  return { offset, limit };
}
