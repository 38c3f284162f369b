// Registers the settings that several extensions read.
import { knownSettings } from "mortise/extension";

export default [...knownSettings];
