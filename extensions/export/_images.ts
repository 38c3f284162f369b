// Pictures stand once in a file: the data block holds them, markup and the download refer to them by number.
import { z } from "mortise/extension";
import { type Html, html } from "./_html.ts";

/** What a browser shows without being able to run anything in it. */
const SAFE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const Image = z.looseObject({ type: z.literal("image"), data: z.string(), mimeType: z.string() });

export interface StoredImage {
  readonly mimeType: string;
  readonly data: string;
}

export class Images {
  readonly list: StoredImage[] = [];
  readonly #known = new Map<string, number>();

  /** The picture, or what is known of one that cannot be shown. */
  show(block: { data: string; mimeType: string }): Html {
    const mimeType = block.mimeType.toLowerCase();
    if (!SAFE_TYPES.includes(mimeType) || !BASE64.test(block.data)) return html`<p class="note">[image: ${block.mimeType}]</p>`;
    return html`<img class="picture" alt="Image" data-image="${this.#number({ mimeType, data: block.data })}">`;
  }

  /** The value with `$image:number` for the data of its pictures. What begins with `$` by itself gets another one. */
  replaceIn(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((member) => this.replaceIn(member));
    if (typeof value !== "object" || value === null) return value;
    const image = "type" in value && value.type === "image" ? Image.safeParse(value).data : undefined;
    if (image !== undefined && BASE64.test(image.data)) {
      return { ...value, data: `$image:${this.#number({ mimeType: image.mimeType, data: image.data })}` };
    }
    if (image?.data.startsWith("$") === true) return { ...value, data: `$${image.data}` };
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.replaceIn(member)]));
  }

  #number(image: StoredImage): number {
    const known = this.#known.get(image.data);
    if (known !== undefined) return known;
    this.#known.set(image.data, this.list.length);
    return this.list.push(image) - 1;
  }
}
