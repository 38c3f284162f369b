// Lets commands wait for servers that are still being asked.
import { createToken } from "mortise/extension";

export interface ModelDiscovery {
  readonly isDiscovering: boolean;
  /** Resolves when every server has answered or run out of time. */
  settled(): Promise<void>;
  /**
   * Asks a provider's server again: a local one gets new models while we run. Without a provider: all that did not answer, because
   * they may have been started since. Resolves at once when there is none. Never rejects.
   */
  askAgain(provider?: string): Promise<void>;
  /** Says which models of models.yml no provider speaks for. Once per provider; not before all extensions are there. */
  tellUnspoken(): void;
}

export const ModelDiscovery = createToken<ModelDiscovery>("model discovery");
