import { Todos } from "mortise/extension";

/** Contributed so that others find the plan by name. */
export default Todos;
