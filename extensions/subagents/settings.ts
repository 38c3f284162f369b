import { defineSetting, z } from "mortise/extension";

export const requestBudget = defineSetting({
  name: "agent.requestBudget",
  summary:
    "Model calls after which a subagent is told to come to an end; it is stopped at one and a half times as many. 0 lifts it",
  schema: z.number().int().min(0),
  default: 200,
});

export default requestBudget;
