import { subagentEvent } from "./_frames.ts";

export default subagentEvent;
