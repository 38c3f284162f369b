// Configuration as data: mappings with nested and dotted keys. Pure functions; nothing here changes its input.
// A path is found under every spelling: `a: {b: {c: 1}}`, `a.b: {c: 1}` and `"a.b.c": 1` are the same setting.

export type Data = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** Settings paths: dotted, no empty part, no white space. */
export function isPath(text: string): boolean {
  return /^[^\s.]+(?:\.[^\s.]+)*$/.test(text) && !text.split(".").includes("__proto__");
}

/** Mappings are merged key by key; everything else is replaced by `over`. */
export function merge(under: unknown, over: unknown): unknown {
  if (!isMapping(under) || !isMapping(over)) return over;
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    if (key === "__proto__") continue;
    merged[key] = Object.hasOwn(merged, key) ? merge(merged[key], value) : value;
  }
  return merged;
}

/** The value at a dotted path, all spellings merged in file order; undefined when there is none. An empty key counts as none. */
export function readPath(data: Data, path: string): unknown {
  let found: unknown;
  for (const [key, value] of Object.entries(data)) {
    if (value === null || value === undefined) continue;
    if (key === path) found = found === undefined ? value : merge(found, value);
    else if (path.startsWith(`${key}.`) && isMapping(value)) {
      const inner = readPath(value, path.slice(key.length + 1));
      if (inner !== undefined) found = found === undefined ? inner : merge(found, inner);
    }
  }
  return found;
}

/** A copy with `value` at a nested path. */
export function withPath(data: Data, path: string, value: unknown): Record<string, unknown> {
  const dot = path.indexOf(".");
  if (dot < 0) return { ...data, [path]: value };
  const head = path.slice(0, dot);
  const inner = data[head];
  return { ...data, [head]: withPath(isMapping(inner) ? inner : {}, path.slice(dot + 1), value) };
}

/** Top-level dotted keys as nested mappings. */
export function expand(data: Data): Record<string, unknown> {
  let expanded: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(data)) {
    if (value === undefined || key === "__proto__") continue;
    const piece = isPath(key) ? withPath({}, key, value) : { [key]: value };
    const merged = merge(expanded, piece);
    if (isMapping(merged)) expanded = merged;
  }
  return expanded;
}

/** Paths above `names` under which `data` has a plain value: the settings below them cannot be there. */
export function blocked(data: Data, names: ReadonlySet<string>): string[] {
  const groups = new Set<string>();
  for (const name of names) {
    for (let dot = name.indexOf("."); dot > 0; dot = name.indexOf(".", dot + 1)) groups.add(name.slice(0, dot));
  }
  return [...groups].filter((group) => {
    const value = names.has(group) ? undefined : readPath(data, group);
    return value !== undefined && !isMapping(value);
  });
}

/**
 * A copy without the entries whose dotted path is one of `paths` or lies under one; `removed` gets the paths that were there.
 */
export function without(data: Data, paths: ReadonlySet<string>, removed: string[], prefix = ""): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(data)) {
    const path = prefix === "" ? key : `${prefix}.${key}`;
    if (covers(paths, path)) {
      if (value !== null && value !== undefined) removed.push(path);
    } else if (isMapping(value) && reaches(paths, path)) kept[key] = without(value, paths, removed, path);
    else kept[key] = value;
  }
  return kept;
}

function covers(paths: ReadonlySet<string>, path: string): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf(".", end - 1)) if (paths.has(path.slice(0, end))) return true;
  return false;
}

function reaches(paths: ReadonlySet<string>, path: string): boolean {
  for (const candidate of paths) if (candidate.startsWith(`${path}.`)) return true;
  return false;
}

/** Makes a value read-only all the way down. */
export function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value) && !ArrayBuffer.isView(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  }
  return value;
}
