import { expect, test } from "vitest";
import { imageSize } from "../../builtin-tools/_image.ts";
import { imageType } from "../../builtin-tools/_sniff.ts";
import { sharp } from "../support/sharp.ts";

test.skipIf(sharp === undefined).each(["png", "jpeg", "gif", "webp"] as const)(
  "the size of a %s is read from its header",
  async (format) => {
    if (sharp === undefined) return;
    const picture = sharp({ create: { width: 321, height: 45, channels: 4, background: { r: 200, g: 10, b: 10, alpha: 0.5 } } });
    for (const options of format === "webp" ? [{ lossless: true }, { quality: 50 }] : [{}]) {
      const bytes = await picture.clone().toFormat(format, options).toBuffer();
      const type = imageType(bytes);
      expect(type).toBe(`image/${format}`);
      if (type !== undefined) expect(imageSize(bytes, type)).toEqual({ width: 321, height: 45 });
    }
  },
);

test("damaged headers give no size and do not throw", () => {
  for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp"] as const) {
    expect(imageSize(Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0]), type)).toBeUndefined();
  }
});
