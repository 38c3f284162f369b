// Settings of older files that became another shape, not only another name; plain renames are `aliases` of the definitions.
// A file that also has the new name is answered by the new name.
import { type Data, isMapping, readPath } from "./_data.ts";

/** Dotted paths of today for what `data` says in older words. */
export function legacyValues(data: Data): Data {
  const values: Record<string, unknown> = {};
  const isolated = readPath(data, "task.isolation.enabled");
  if (typeof isolated === "boolean") values["agent.isolation.mode"] = isolated ? "auto" : "none";
  const memories = readPath(data, "memories.enabled");
  if (typeof memories === "boolean") values["memory.backend"] = memories ? "local" : "off";
  const agents = agentOverrides(data);
  if (agents !== undefined) values["agent.agents"] = agents;
  return values;
}

function agentOverrides(data: Data): Record<string, unknown> | undefined {
  const agents: Record<string, Record<string, unknown>> = {};
  const models = readPath(data, "task.agentModelOverrides");
  if (isMapping(models)) {
    for (const [name, model] of Object.entries(models)) if (typeof model === "string") agents[name] = { model };
  }
  const disabled = readPath(data, "task.disabledAgents");
  if (Array.isArray(disabled)) {
    for (const name of disabled) if (typeof name === "string") agents[name] = { ...agents[name], enabled: false };
  }
  return Object.keys(agents).length === 0 ? undefined : agents;
}
