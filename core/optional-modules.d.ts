// What we use of optional dependencies, so that the types hold whether or not they are installed.

declare module "sharp" {
  type Format = "png" | "jpeg" | "gif" | "webp";
  interface Info {
    width: number;
    height: number;
  }
  interface Picture {
    raw(): Picture;
    rotate(): Picture;
    clone(): Picture;
    png(): Picture;
    jpeg(options?: { quality?: number }): Picture;
    resize(options: { width: number; height: number; fit: "inside"; withoutEnlargement: boolean }): Picture;
    resize(options: { width: number; height: number; fit: "fill"; fastShrinkOnLoad: boolean }): Picture;
    flatten(options: { background: string }): Picture;
    toFormat(format: Format, options?: { lossless?: boolean; quality?: number }): Picture;
    toBuffer(): Promise<Buffer>;
    toBuffer(options: { resolveWithObject: true }): Promise<{ data: Buffer; info: Info }>;
    metadata(): Promise<Partial<Info>>;
  }
  type Background = string | { r: number; g: number; b: number; alpha: number };
  interface Create {
    create: { width: number; height: number; channels: 3 | 4; background: Background };
  }
  export default function sharp(input: Uint8Array | Create, options?: { failOn?: "error" }): Picture;
}
