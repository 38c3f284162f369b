// How long calls took, per owner: the last ones only, in a ring, so that keeping them costs two array writes a call.

/** As many as one needs for a steady 95th percentile. */
const KEPT = 128;

interface Ring {
  readonly values: Float64Array;
  /** Calls ever. */
  count: number;
}

/** Of the calls kept; milliseconds. */
export interface LatencySummary {
  readonly calls: number;
  readonly p95Ms: number;
}

export class Latencies {
  readonly #rings = new Map<string, Ring>();

  add(owner: string, ms: number): void {
    let ring = this.#rings.get(owner);
    if (ring === undefined) {
      ring = { values: new Float64Array(KEPT), count: 0 };
      this.#rings.set(owner, ring);
    }
    ring.values[ring.count++ % KEPT] = ms;
  }

  /** `calls` counts all of them; the percentile is that of the last 128. */
  of(owner: string): LatencySummary {
    const ring = this.#rings.get(owner);
    if (ring === undefined) return { calls: 0, p95Ms: 0 };
    const sorted = ring.values.slice(0, Math.min(ring.count, KEPT)).sort();
    return { calls: ring.count, p95Ms: sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0 };
  }
}
