// Replaced by the generator: every command's parameters and result, every frame's shape.

export interface CommandMap {
  [name: string]: { params: Record<string, unknown>; result: unknown };
}

export interface EventMap {
  [type: string]: Record<string, unknown>;
}
